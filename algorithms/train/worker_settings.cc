#include "algorithms/train/worker_settings.h"

#include <cstdlib>

#include "runtime/base/json.h"
#include "runtime/observe/format.h"
#include "runtime/observe/run_directory.h"

namespace paceline::train {
namespace {

/// What the environment says where the job says nothing.
template <class Parsed>
Result<Parsed> or_environment(const std::string& given, const char* variable,
                              Result<Parsed> (*parse)(std::string_view)) {
  const char* const set = given.empty() ? std::getenv(variable) : nullptr;
  auto parsed = parse(set ? set : given.c_str());
  if (!parsed && set) return fail(ErrorKind::invalid, observe::format("%s %s", variable, parsed.error().text.c_str()));
  return parsed;
}

}  // namespace

std::string WorkerSettings::checkpoint_path() const {
  return options.run_directory.empty() ? "" : observe::RunDirectory::at(options.run_directory).checkpoint();
}

std::string WorkerSettings::fresh_checkpoint_path(Rank writer) const {
  return options.run_directory.empty() ? "" : observe::RunDirectory::at(options.run_directory).fresh_checkpoint(writer);
}

Result<WorkerSettings> parse_worker_settings(std::string_view text) {
  const auto json = parse_json(text);
  if (!json.is_object()) return fail(ErrorKind::invalid, "the job's options are not a JSON object");
  auto options = job::read_options(json);
  if (!options) return tl::unexpected(options.error());
  WorkerSettings settings{.options = *std::move(options)};
  const job::Options& given = settings.options;
  if (given.optimizer_state == "keep") settings.optimizer_state = OptimizerState::keep;
  if (given.optimizer_state == "reset") settings.optimizer_state = OptimizerState::reset;
  if (given.optimizer_state == "average") settings.optimizer_state = OptimizerState::average;
  settings.average_buffers = given.buffers == "average";
  auto slow = or_environment(given.slow, "PACELINE_SLOW", job::parse_slow_workers);
  if (!slow) return tl::unexpected(slow.error());
  settings.slow = *std::move(slow);
  const auto straggle = or_environment(given.straggle, "PACELINE_STRAGGLE", job::parse_random_delay);
  if (!straggle) return tl::unexpected(straggle.error());
  settings.straggle = *straggle;
  return settings;
}

}  // namespace paceline::train
