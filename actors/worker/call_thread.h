#pragma once

#include <functional>
#include <memory>
#include <string>

#include "actors/causes.h"
#include "actors/client.h"
#include "actors/worker/call_queues.h"
#include "actors/worker/executor.h"
#include "actors/worker/running_calls.h"

namespace paceline::worker {

/// What the threads of a worker that run calls have in common. Lives as long as the process.
struct CallThreads {
  CallQueues queues{};
  RunningCalls running{};
  WorkerId worker{};
  StateKeeper keeper{};
  std::unique_ptr<actors::SpanBook> spans{};
  actors::Client* client = nullptr;
  std::function<void(const Error&)> give_up;  ///< Does not return.
};

/// Where this is, with its log, if something stands in it.
actors::Place place_here(WorkerId worker);
/// "worker 3 on node 0, log /run/worker-3.log", for the end of errors.
std::string where(WorkerId worker);
/// The error of what was cancelled: `what` is "task " or "call ".
tl::unexpected<Error> cancelled(const std::string& what, TaskId task, const std::string& when);
/// Runs what a worker is sent, for ever, on the calling thread; on further ones, too, when that is an actor with some.
[[noreturn]] void run_calls(CallThreads& shared);

}  // namespace paceline::worker
