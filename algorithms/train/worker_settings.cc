#include "algorithms/train/worker_settings.h"

#include <cstdlib>

#include "runtime/base/json.h"
#include "runtime/observe/run_directory.h"

namespace paceline::train {
namespace {

template <class T>
Result<void> read(const nlohmann::json& json, const char* key, T& out) {
  const auto it = json.find(key);
  if (it == json.end() || it->is_null()) return {};
  const bool fits = std::is_same_v<T, std::string> ? it->is_string()
                    : std::is_floating_point_v<T>  ? it->is_number()
                    : std::is_unsigned_v<T>        ? it->is_number_unsigned()
                                                   : it->is_number_integer();
  if (!fits) return fail(ErrorKind::invalid, std::string("job option '") + key + "' has the wrong type: " + it->dump());
  out = it->get<T>();
  return {};
}

std::string or_environment(std::string value, const char* variable) {
  const char* set = value.empty() ? std::getenv(variable) : nullptr;
  return set ? set : value;
}

}  // namespace

std::string WorkerSettings::checkpoint_path() const {
  return run_directory.empty() ? "" : observe::RunDirectory::at(run_directory).checkpoint();
}

std::string WorkerSettings::fresh_checkpoint_path() const {
  return run_directory.empty() ? "" : observe::RunDirectory::at(run_directory).fresh_checkpoint();
}

Result<WorkerSettings> parse_worker_settings(std::string_view text) {
  const auto json = parse_json(text);
  if (!json.is_object()) return fail(ErrorKind::invalid, "the job's options are not a JSON object");
  WorkerSettings settings;
  std::string slow;
  std::string straggle;
  std::string optimizer_state;
  std::string buffers = "average";
  PACELINE_TRY(read(json, "workers", settings.workers));
  PACELINE_TRY(read(json, "strategy", settings.strategy));
  PACELINE_TRY(read(json, "batch", settings.batch));
  PACELINE_TRY(read(json, "samples", settings.samples));
  PACELINE_TRY(read(json, "epochs", settings.epochs));
  PACELINE_TRY(read(json, "evaluate_every_epochs", settings.evaluate_every_epochs));
  PACELINE_TRY(read(json, "seed", settings.seed));
  PACELINE_TRY(read(json, "run_directory", settings.run_directory));
  PACELINE_TRY(read(json, "resume", settings.resume));
  PACELINE_TRY(read(json, "optimizer_state", optimizer_state));
  PACELINE_TRY(read(json, "buffers", buffers));
  PACELINE_TRY(read(json, "slow", slow));
  PACELINE_TRY(read(json, "straggle", straggle));
  if (settings.workers < 1)
    return fail(ErrorKind::invalid, "workers is " + std::to_string(settings.workers) + ": give at least 1");
  if (!(settings.epochs > 0)) return fail(ErrorKind::invalid, "epochs is not a number above 0: give one");
  if (settings.batch < 1)
    return fail(ErrorKind::invalid, "batch is " + std::to_string(settings.batch) + ": give at least 1");
  if (settings.samples < 0)
    return fail(ErrorKind::invalid, "samples is " + std::to_string(settings.samples) +
                                        ": give the samples of an epoch, or 0 for those of the training set");
  if (optimizer_state == "keep") settings.optimizer_state = OptimizerState::keep;
  if (optimizer_state == "reset") settings.optimizer_state = OptimizerState::reset;
  if (optimizer_state == "average") settings.optimizer_state = OptimizerState::average;
  if (!optimizer_state.empty() && !settings.optimizer_state)
    return fail(ErrorKind::invalid, "optimizer_state=" + optimizer_state + ": give keep, reset or average");
  if (buffers != "average" && buffers != "keep")
    return fail(ErrorKind::invalid, "buffers=" + buffers + ": give average or keep");
  settings.average_buffers = buffers == "average";
  if (auto parsed = parse_slow_worker(or_environment(std::move(slow), "PACELINE_SLOW"))) {
    settings.slow = *parsed;
  } else {
    return tl::unexpected(std::move(parsed).error());
  }
  if (auto parsed = parse_random_delay(or_environment(std::move(straggle), "PACELINE_STRAGGLE"))) {
    settings.straggle = *parsed;
  } else {
    return tl::unexpected(std::move(parsed).error());
  }
  return settings;
}

}  // namespace paceline::train
