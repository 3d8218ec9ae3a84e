#include "actors/worker/durable_actor.h"

#include <utility>

#include "actors/protocol_wire.h"

namespace paceline::worker {
namespace {

Bytes encoded(const Error& error) {
  return std::move(actors::encode(actors::CallResult{{}, {}, tl::unexpected(error)}).front());
}

Result<Bytes> decoded(Bytes bytes) {
  Result<Bytes> answer = fail(ErrorKind::internal, "an answer that was kept cannot be read");
  auto received = wire::Received::parse(std::move(bytes));
  if (!received) return answer;
  (void)received->visit(
      [&](wire::Envelope::Reader root) { answer = tl::unexpected(actors::read(root.getCallResult().getError())); });
  return answer;
}

}  // namespace

DurableActor::DurableActor(StateKeeper keeper, const actors::CreateActor& create)
    : keeper_(std::move(keeper)),
      is_asked_again_(create.rule.call_retries != 0),
      is_one_at_a_time_(create.concurrency.is_one_at_a_time()) {
  actors::set_durable_home(this);
}

DurableActor::~DurableActor() {
  if (actors::durable_home() == this) actors::set_durable_home(nullptr);
}

Result<actors::DurableState*> DurableActor::state() {
  if (constructed_)
    return fail(ErrorKind::invalid, "durable state is made in an actor's constructor, not in its methods");
  if (!is_one_at_a_time_)
    return fail(ErrorKind::invalid,
                "durable state in an actor that runs several calls at a time: what one of them changes could not count "
                "alone: leave out concurrency and groups");
  if (state_) return state_.get();
  auto found = keeper_.find();
  if (!found) return tl::unexpected(found.error());
  restored_ = static_cast<bool>(*found);
  auto state = restored_ ? actors::DurableState::open(*std::move(found)) : actors::DurableState::create();
  if (!state) return tl::unexpected(state.error());
  state_ = *std::move(state);
  return state_.get();
}

Result<void> DurableActor::finish() {
  constructed_ = true;
  if (!state_) return {};
  PACELINE_TRY(state_->finish());
  if (!restored_) PACELINE_TRY(keeper_.keep(state_->fd()));
  return {};
}

std::optional<Result<Bytes>> DurableActor::answered(const actors::Call& call) const {
  if (!state_ || call.resent == 0 || call.number == 0) return std::nullopt;
  using Kept = actors::CallRecords::Kept;
  actors::CallRecords::Answer answer;
  switch (state_->records().find(actors::process_of(call.task), call.number, answer)) {
    case Kept::not_done: return std::nullopt;
    case Kept::kept: return answer.ok ? Result<Bytes>(std::move(answer.bytes)) : decoded(std::move(answer.bytes));
    case Kept::lost: break;
  }
  return fail(ErrorKind::disconnected,
              "the call was done before its actor was started again, and what it was answered is not kept any more");
}

Result<void> DurableActor::store(const actors::Call& call, const Result<Bytes>& answer) {
  if (!is_asked_again_) return state_->publish({});
  const Bytes error = answer ? Bytes{} : encoded(answer.error());
  return state_->publish(actors::DurableState::Done{actors::process_of(call.task), call.number, answer.has_value(),
                                                    answer ? std::span(*answer) : std::span(error)});
}

Result<Bytes> DurableActor::publish(const actors::Call& call, Result<Bytes> answer) {
  if (!state_) return answer;
  const auto stored = store(call, answer);
  if (stored) return answer;
  answer = fail(stored.error().kind, "what the call has changed of durable state is undone: " + stored.error().text);
  (void)store(call, answer);  // Where not even this can be kept, the call may run again: it has changed nothing.
  return answer;
}

}  // namespace paceline::worker
