#include "actors/wait.h"

namespace paceline::actors {

void wait_for_each(std::span<const PendingResultPtr> results, const GetOptions& options) {
  for (const auto& result : results)
    if (!result) throw TaskError({ErrorKind::invalid, "an empty future was asked for its result"});
  const std::size_t late = wait_for_all(results, options.timeout);
  if (late == results.size()) return;
  const Error error = not_there(*results[late], *options.timeout);
  throw TaskError(
      {error.kind, "future " + std::to_string(late) + " of " + std::to_string(results.size()) + ": " + error.text});
}

void check_wait(std::size_t futures, std::size_t count) {
  if (count > futures)
    throw TaskError({ErrorKind::invalid, "wait() for " + std::to_string(count) + " of " + std::to_string(futures) +
                                             " futures: ask for no more than there are"});
}

}  // namespace paceline::actors
