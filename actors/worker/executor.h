#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "actors/causes.h"
#include "actors/client.h"
#include "actors/invoke.h"
#include "actors/spans/span_writer.h"
#include "actors/worker/durable_actor.h"

namespace paceline::worker {

/// Executes what the agent asks of a worker, on the thread that it is of: constructs the actor, calls its methods, runs
/// tasks. Owns the actor's instance, with those of other threads. What users' code throws becomes an error with the
/// type, the text and `where`.
class Executor {
 public:
  /// `where` this is, and its log as it is then: every error says so. `keeper`: of the durable state of an actor that
  /// may be started again. `spans`: where it writes down what it runs; may be null.
  explicit Executor(std::function<actors::Place()> where, StateKeeper keeper = {}, actors::SpanBook* spans = nullptr)
      : where_(std::move(where)),
        keeper_(std::move(keeper)),
        spans_(spans),
        track_(spans == nullptr ? nullptr : std::make_unique<actors::SpanTrack>(*spans)) {}

  actors::ActorReady construct(actors::CreateActor create);
  /// Of the same actor, for another thread.
  Executor for_another_thread() const;
  /// Nothing: a coroutine method has begun, and waits for something.
  /// `values`: of a generator's.
  std::optional<actors::CallResult> call(actors::Call call, actors::ValueSink* values = nullptr);
  /// One of them goes on. The answers of those that are done with that.
  std::vector<actors::CallResult> resume(const std::function<void()>& go_on);
  /// The actor has asked for its end: its instance goes, and coroutines that wait before it. What its agent is to hear.
  actors::ActorReady end();

 private:
  /// What is called, until somebody wants to know its name.
  struct Callee {
    actors::CalleeName name = nullptr;
    Bytes first{};
    std::string build{};
    std::string task{};  ///< The task's name.
  };
  struct Begun {
    actors::CallResult answer;  ///< Without its value.
    std::unique_ptr<actors::UnfinishedCall> call;
    Callee callee;
    actors::SpanRecord span{};
  };
  Result<void> invoke(const actors::FunctionRef& function, std::span<const Bytes> arguments,
                      actors::Invocation& invocation);
  Result<void> construct_in(const actors::CreateActor& create);
  Result<Bytes> value_of(Result<Bytes> result, const Callee& callee) const;

  std::function<actors::Place()> where_;
  StateKeeper keeper_;
  actors::SpanBook* spans_;
  std::unique_ptr<actors::SpanTrack> track_;
  std::string name_;  ///< The actor's.
  ActorId actor_;
  std::unique_ptr<DurableActor> durable_;  ///< Of one that may be started again.
  std::shared_ptr<void> instance_;
  std::unordered_map<TaskId, Begun> begun_;
  std::vector<TaskId> done_;  ///< Of them.
};

}  // namespace paceline::worker
