#include "actors/worker/executor.h"

#include <cxxabi.h>

#include <utility>

#include "actors/invoke.h"
#include "actors/thrown.h"
#include "runtime/base/steady_now.h"

namespace paceline::worker {
namespace {

/// `run`, which users' code may leave by throwing anything.
template <class Run>
auto caught(Run run) -> decltype(run()) {
  try {
    return run();
  } catch (abi::__forced_unwind&) {
    throw;  // A thread's cancellation is no exception of the user's.
  } catch (...) {
    return tl::unexpected(actors::error_thrown());
  }
}

/// Of a generator that an earlier process has done.
tl::unexpected<Error> values_lost() {
  return fail(ErrorKind::disconnected,
              "the actor was started again when this generator was over: which of its values had left is unknown");
}

}  // namespace

Result<void> Executor::invoke(const actors::FunctionRef& function, std::span<const Bytes> arguments,
                              actors::Invocation& invocation) {
  auto address = actors::resolve(function);
  if (!address) return tl::unexpected(std::move(address).error());
  invocation.arguments = arguments;
  invocation.build = function.build;
  invocation.watch = track_.get();
  return caught([&] { return reinterpret_cast<actors::Thunk>(*address)(invocation); });
}

actors::ActorReady Executor::construct(actors::CreateActor create) {
  actors::ActorReady ready{create.actor, create.owner, false, {}};
  if (instance_) {
    ready.error = {ErrorKind::internal, "a second actor was sent to " + to_string(where_())};
    return ready;
  }
  actor_ = create.actor;
  name_ = create.name;
  if (track_) track_->begin(actors::plain_name(create.type) + " constructor", create.owner, steady_now());
  const auto done = construct_in(create);
  if (track_) track_->end(steady_now(), !done);
  if (!done) {
    const auto whose = "the constructor of actor " + (name_.empty() ? to_string(actor_) : "'" + name_ + "'");
    ready.error = actors::leaving(done.error(), whose, where_(), "in " + whose + ", ");
  }
  return ready;
}

Result<void> Executor::construct_in(const actors::CreateActor& create) {
  if (create.rule.restarts != 0 && keeper_.find) durable_ = std::make_unique<DurableActor>(keeper_, create);
  actors::Invocation invocation;
  PACELINE_TRY(invoke(create.function, create.arguments, invocation));
  instance_ = std::move(invocation.created);
  return durable_ ? durable_->finish() : Result<void>();
}

Executor Executor::for_another_thread() const {
  Executor other(where_, {}, spans_);
  other.name_ = name_;
  other.actor_ = actor_;
  other.instance_ = instance_;
  return other;
}

std::optional<actors::CallResult> Executor::call(actors::Call call, actors::ValueSink* values) {
  actors::CallResult answer{call.task, call.owner, Bytes{}, call.by_line, false, {}};
  if (call.actor.value != 0 && (!instance_ || call.actor != actor_)) {
    answer.value = fail(ErrorKind::not_found, "actor " + to_string(call.actor) + " is not on " + to_string(where_()));
    return answer;
  }
  if (durable_)
    if (auto answered = durable_->answered(call)) {
      answer.value = call.ahead == 0 ? *std::move(answered) : values_lost();
      return answer;
    }
  actors::Invocation invocation;
  invocation.object = call.actor.value != 0 ? instance_.get() : nullptr;
  invocation.values = call.ahead > 0 ? values : nullptr;
  const Instant began = steady_now();
  if (track_) track_->begin(call, began);
  const auto invoked = invoke(call.function, call.arguments, invocation);
  const Instant ended = steady_now();
  answer.ran = ended - began;
  Callee callee{invocation.name};
  if (invocation.name != nullptr && !call.arguments.empty()) {
    callee.first = std::move(call.arguments.front());
    callee.build = std::move(call.function.build);
  }
  callee.task = std::move(call.name);
  if (invoked && invocation.unfinished && !invocation.unfinished->done()) {
    const TaskId task = call.task;
    invocation.unfinished->on_done([this, task] { done_.push_back(task); });
    begun_.insert_or_assign(task, Begun{std::move(answer), std::move(invocation.unfinished), std::move(callee),
                                        track_ ? track_->leave() : actors::SpanRecord()});
    return std::nullopt;
  }
  answer.value =
      value_of(!invoked                ? tl::unexpected(invoked.error())
               : invocation.unfinished ? caught([&] { return Result<Bytes>(invocation.unfinished->result()); })
                                       : Result<Bytes>(std::move(invocation.result)),
               callee);
  if (durable_) answer.value = durable_->publish(call, std::move(answer.value));
  if (track_) track_->end(ended, !answer.value);
  return answer;
}

std::vector<actors::CallResult> Executor::resume(const std::function<void()>& go_on) {
  go_on();
  std::vector<actors::CallResult> answers;
  for (const TaskId task : std::exchange(done_, {})) {
    auto begun = begun_.extract(task);
    if (begun.empty()) continue;
    Begun& ended = begun.mapped();
    ended.answer.value = value_of(caught([&] { return Result<Bytes>(ended.call->result()); }), ended.callee);
    if (track_) track_->end(ended.span, steady_now(), !ended.answer.value);
    answers.push_back(std::move(ended.answer));
  }
  return answers;
}

actors::ActorReady Executor::end() {
  begun_.clear();
  instance_.reset();
  const auto who = name_.empty() ? "actor " + to_string(actor_) : "actor '" + name_ + "'";
  actors::ActorReady gone{actor_, {}, true, {}};
  gone.error = actors::began({ErrorKind::disconnected, who + " has ended: it has called paceline::exit()"}, where_(),
                             who, "it has called paceline::exit()");
  return gone;
}

/// As the caller gets it: bounded, and an error says where it happened.
Result<Bytes> Executor::value_of(Result<Bytes> result, const Callee& callee) const {
  if (!result) {
    const auto whose = actor_.value == 0 ? actors::task_called(callee.task)
                       : name_.empty()   ? "actor " + to_string(actor_)
                                         : "actor '" + name_ + "'";
    auto what = actors::whats_of(callee.name == nullptr ? "" : callee.name(callee.first, callee.build), whose);
    return tl::unexpected(
        actors::leaving(std::move(result).error(), std::move(what), where_(), whose.empty() ? "" : whose + ", "));
  }
  if (result->size() > actors::kResultBytesMax)
    return fail(ErrorKind::invalid, "the result takes " + std::to_string(result->size() >> 20) + " MiB; at most " +
                                        std::to_string(actors::kResultBytesMax >> 20) +
                                        " MiB can come back by value: give it in parts");
  return result;
}

}  // namespace paceline::worker
