#include "actors/then.h"

#include "actors/causes.h"
#include "actors/continuations.h"

namespace paceline::actors {
namespace {

Error begun_in_then(const Error& error) {
  return began({error.kind, error.text + " (in a function given to then())"}, {}, "a function given to then()",
               error.text);
}

}  // namespace

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
        const auto error = error_thrown();
        result->complete(tl::unexpected(error.causes ? error : begun_in_then(error)));
      }
    });
  });
}

}  // namespace paceline::actors
