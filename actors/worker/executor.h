#pragma once

#include <memory>
#include <string>
#include <variant>

#include "actors/client.h"

namespace paceline::worker {

/// Executes what the agent asks of a worker, in order of arrival, on the compute thread: constructs the actor, calls
/// its methods, runs tasks. Owns the actor's instance. What users' code throws becomes an error with the type, the text
/// and `where`.
class Executor {
 public:
  using Answer = std::variant<actors::ActorReady, actors::CallResult>;

  /// `where` ends every error: "worker 3 on node 0, log /run/worker-3.log".
  explicit Executor(std::string where) : where_(std::move(where)) {}

  Answer run(actors::Work work);

 private:
  actors::ActorReady construct(actors::CreateActor create);
  actors::CallResult call(actors::Call call);
  Result<void> invoke(const actors::FunctionRef& function, std::vector<Bytes> arguments, void* object,
                      std::shared_ptr<void>* created, Bytes* result);

  std::string where_;
  std::string name_;  ///< The actor's.
  ActorId actor_;
  std::shared_ptr<void> instance_;
};

}  // namespace paceline::worker
