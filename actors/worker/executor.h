#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "actors/client.h"
#include "actors/invoke.h"

namespace paceline::worker {

/// Executes what the agent asks of a worker, on the thread that it is of: constructs the actor, calls its methods, runs
/// tasks. Owns the actor's instance, with those of other threads. What users' code throws becomes an error with the
/// type, the text and `where`.
class Executor {
 public:
  /// `where` ends every error: "worker 3 on node 0, log /run/worker-3.log".
  explicit Executor(std::function<std::string()> where) : where_(std::move(where)) {}

  actors::ActorReady construct(actors::CreateActor create);
  /// Of the same actor, for another thread.
  Executor for_another_thread() const;
  /// Nothing: a coroutine method has begun, and waits for something.
  std::optional<actors::CallResult> call(actors::Call call);
  /// One of them goes on. The answers of those that are done with that.
  std::vector<actors::CallResult> resume(const std::function<void()>& go_on);

 private:
  struct Begun {
    actors::CallResult answer;  ///< Without its value.
    std::unique_ptr<actors::UnfinishedCall> call;
  };
  Result<void> invoke(const actors::FunctionRef& function, std::vector<Bytes> arguments,
                      actors::Invocation& invocation);
  Result<Bytes> value_of(Result<Bytes> result) const;

  std::function<std::string()> where_;
  std::string name_;  ///< The actor's.
  ActorId actor_;
  std::shared_ptr<void> instance_;
  std::unordered_map<TaskId, Begun> begun_;
  std::vector<TaskId> done_;  ///< Of them.
};

}  // namespace paceline::worker
