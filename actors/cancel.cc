#include "actors/cancel.h"

#include <utility>

#include "actors/process_client.h"
#include "actors/submit.h"

namespace paceline {
namespace actors {
namespace {

thread_local std::stop_token current_token;

}  // namespace

void set_stop_token(std::stop_token token) { current_token = std::move(token); }

Cancelled cancel(const PendingResultPtr& result, const CancelOptions& options) {
  if (!result) throw TaskError({ErrorKind::invalid, "an empty future cannot be cancelled"});
  return or_throw(process_client().cancel(result, options.force));
}

}  // namespace actors

bool cancelled() { return actors::current_token.stop_requested(); }
std::stop_token stop_token() { return actors::current_token; }

}  // namespace paceline
