#include "actors/then.h"

#include "actors/continuations.h"

namespace paceline::actors {

void continue_with(const PendingResultPtr& source, const PendingResultPtr& result,
                   std::function<void(const Bytes&)> run) {
  source->when_ready([source, result, run = std::move(run)]() mutable {
    const auto& value = source->wait();
    if (!value) return (void)result->complete(tl::unexpected(value.error()));
    continuations().post([source, result, run = std::move(run)](bool may_run) {
      if (!may_run)
        return (void)result->complete(fail(ErrorKind::cancelled, "this process has left the cluster: main has ended"));
      if (result->ready()) return;  // Nobody wants it any more.
      try {
        run(*source->wait());
      } catch (...) {
        result->complete(tl::unexpected(error_thrown(" (in a function given to then())")));
      }
    });
  });
}

}  // namespace paceline::actors
