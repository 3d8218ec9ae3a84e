#include "algorithms/train/worker_settings.h"

#include <cstdlib>

#include "algorithms/job/options.h"
#include "runtime/base/json.h"
#include "runtime/observe/run_directory.h"

namespace paceline::train {
namespace {

template <class T>
void read(const nlohmann::json& json, const char* key, T& out) {
  if (const auto it = json.find(key); it != json.end()) out = it->get<T>();
}

std::string or_environment(std::string value, const char* variable) {
  const char* set = value.empty() ? std::getenv(variable) : nullptr;
  return set ? set : value;
}

}  // namespace

std::string WorkerSettings::checkpoint_path() const {
  return run_directory.empty() ? "" : observe::RunDirectory::at(run_directory).checkpoint();
}

std::string WorkerSettings::fresh_checkpoint_path(Rank writer) const {
  return run_directory.empty() ? "" : observe::RunDirectory::at(run_directory).fresh_checkpoint(writer);
}

Result<WorkerSettings> parse_worker_settings(std::string_view text) {
  const auto json = parse_json(text);
  if (!json.is_object()) return fail(ErrorKind::invalid, "the job's options are not a JSON object");
  PACELINE_TRY(job::check_options(json));
  WorkerSettings settings;
  std::string slow;
  std::string straggle;
  std::string optimizer_state;
  std::string buffers = "average";
  read(json, "workers", settings.workers);
  read(json, "strategy", settings.strategy);
  read(json, "batch", settings.batch);
  read(json, "samples", settings.samples);
  read(json, "epochs", settings.epochs);
  read(json, "evaluate_every_epochs", settings.evaluate_every_epochs);
  read(json, "early_stopping", settings.early_stopping);
  read(json, "seed", settings.seed);
  read(json, "run_directory", settings.run_directory);
  read(json, "resume", settings.resume);
  read(json, "optimizer_state", optimizer_state);
  read(json, "buffers", buffers);
  read(json, "slow", slow);
  read(json, "straggle", straggle);
  if (optimizer_state == "keep") settings.optimizer_state = OptimizerState::keep;
  if (optimizer_state == "reset") settings.optimizer_state = OptimizerState::reset;
  if (optimizer_state == "average") settings.optimizer_state = OptimizerState::average;
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
