#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "algorithms/session/session_core.h"
#include "runtime/base/check.h"
#include "scheduler/record/replay.h"

// Its steps: with models, with gradients, and what both have in common.

namespace paceline::session {
namespace {

// "Over" would be untrue, and the same mini-batch would begin again, for ever.
constexpr const char* kNoBuffer = "this worker has no buffer for its update, and its job goes on";
constexpr const char* kOtherSize = "the gradient has another number of elements than the model that is shared";

}  // namespace

/// Alone a worker's own gradient is the average, and its model stays where it is.
paceline_payload SessionCore::payload_at(std::int64_t update) const {
  if (alone_) return terms_.payloads.gradients_until > 0 ? PACELINE_GRADIENTS : PACELINE_MODELS;
  switch (terms_.payloads.at(update, info_.updates - 1)) {
    case algorithms::Payloads::Kind::gradients: break;
    case algorithms::Payloads::Kind::models: return PACELINE_MODELS;
    case algorithms::Payloads::Kind::both: return PACELINE_BOTH;
  }
  return PACELINE_GRADIENTS;
}

void SessionCore::begin_update(std::int64_t update) {
  lease_ = {update, 0, payload_at(update), lr_may_decay_};
  since_ = update * info_.bodies;
  update_began_ = now();
  window_.progress().bodies.store(0, std::memory_order_release);
  window_.progress().step.store(update, std::memory_order_seq_cst);  // Before it looks whether a replica is wanted.
}

SessionCore::Outcome SessionCore::step_model(const paceline_stats& stats) {
  if (is<Computing>())
    if (const auto done = begin_step_model(stats)) return done;
  if (is<AwaitsAgent>()) {
    const auto outcome = await_agent();
    return outcome == PACELINE_APPLY ? PACELINE_GO_ON : outcome;
  }
  if (is<AwaitsTurn>()) {
    if (!has_its_turn()) return wait();
    leave();
    publish_model();
  }
  const auto outcome = await_verdict();
  if (outcome != PACELINE_APPLY) return outcome;
  const auto buffer = window_.writing();
  // The job's model is what the block ended with, not where another one would start.
  if (terms_.has_outer_step() && buffer)
    numbers_.begin_next_block(window_.data(*buffer), stats.learning_rate, lease_.update > last());
  return PACELINE_MOVED;
}

SessionCore::Outcome SessionCore::begin_step_model(const paceline_stats& stats) {
  const auto buffer = window_.writing();
  if (is_over()) return PACELINE_OVER;
  PACELINE_CHECK(buffer, kNoBuffer);
  if (lease_.payload != PACELINE_BOTH) add_loss(stats);  // Else its gradient has told.
  if (lease_.update < next_round_ && lease_.update < last() && !terms_.publishes_every) {
    span("compute", update_began_, now());
    is_average_ = false;
    const auto since = since_;
    begin_update(lease_.update + 1);
    since_ = since;
    return PACELINE_GO_ON;
  }
  fill_tag(window_.tag(*buffer), stats);
  if (!terms_.weighs_by_samples) samples_ = 0;
  if (!alone_) {
    enter(AwaitsTurn{});
    return std::nullopt;
  }
  arrive();
  enter(AwaitsAgent{});
  return std::nullopt;
}

void SessionCore::publish_model() {
  const auto buffer = *window_.writing();
  const Instant began = now();
  if (stands_apart()) numbers_.take_step_apart(window_.data(buffer));
  window_.publish(terms_.publishes_every);
  span("publish", began, now());
  arrive();
  set_state(State::wait);
  enter(AwaitsVerdict{buffer});
}

SessionCore::Outcome SessionCore::await_verdict() {
  const auto published = std::get<AwaitsVerdict>(phase_).published;
  const auto verdict = new_verdict();
  if (!verdict) return wait();
  leave();
  span("wait", entered_, now());
  if (verdict->averaged) {
    samples_ = 0;
    ++averagings_;
  }
  next_round_ = verdict->next_round;
  lr_may_decay_ = verdict->lr_may_decay;
  // The job is over and this worker was late for its last averaging: it ends with the same model as the others.
  needs_replica_ = verdict->end && !verdict->fresh;
  const bool gradients = lease_.payload == PACELINE_GRADIENTS;
  is_average_ = verdict->averaged || gradients;
  is_of_all_ = verdict->of_all;
  auto to = window_.writing();
  if (!is_average_) {
    // Published without a round: it goes on from the same numbers, in the buffer that publish() reserved, or in the
    // very one (a run that was resumed between two rounds learns only now when the next one is).
    if (!to) to = window_.withdraw();
    if (to && *to != published)
      std::memcpy(window_.data(*to).data(), window_.data(published).data(), window_.data(*to).size());
  }
  PACELINE_CHECK(to, kNoBuffer);
  if (is_average_) take_members(*to);
  if (stands_apart()) numbers_.put_step_together(window_.data(*to), verdict->fresh ? window_.tag(*to).divisor : 1);
  if (gradients) set_result(window_.data(*to).data());
  if (!needs_replica_) begin_update(verdict->next);  // Else the agent sees that it is not there yet.
  return verdict->averaged || gradients ? PACELINE_APPLY : PACELINE_GO_ON;
}

/// A job of one worker: its own contribution is the average, so it waits for its agent only where an evaluation is due.
SessionCore::Outcome SessionCore::await_agent() {
  const std::int64_t update = lease_.update;
  const auto is_answered = [&] {
    if (terms_.abandons) return executed() >= update;
    const auto answer = control_.verdict(verdicts_seen_);
    return answer && answer->verdict.own >= update;
  };
  if (is_due_alone() && !is_answered()) return wait();
  leave();
  begin_update(update + 1);
  return PACELINE_APPLY;
}

/// Whether a job of one worker may end with the present update, or be evaluated after it: the evaluation that is due
/// comes with the strategy's next round of all.
bool SessionCore::is_due_alone() const {
  const std::int64_t update = lease_.update;
  const std::int64_t evaluated = std::max(evaluated_, info_.first_update - 1);
  return update >= last() || stop_asked_ ||
         (evaluate_every_ > 0 && (update + 1) / evaluate_every_ > (evaluated + 1) / evaluate_every_);
}

// Gradients: sums over the mini-batches of an update, and updates that another one ends
// --------------------------------

SessionCore::Outcome SessionCore::step_gradients(std::span<const paceline_span> pieces, const paceline_stats& stats) {
  if (is<Computing>()) {
    result_ = {};
    if (is_over()) return PACELINE_OVER;
    if (terms_.steps_by_batch()) {
      if (const auto done = add_to_batch(pieces, stats)) return done;
    } else {
      enter(AwaitsTurn{});
    }
  }
  if (is<AwaitsTurn>()) {
    if (!alone_ && !has_its_turn()) return wait();
    leave();
    if (const auto done = add_gradients(pieces, stats)) return done;
  }
  if (is<AwaitsNextTurn>()) {
    if (!alone_ && !has_its_turn()) return wait();
    leave();
    if (!is_abandoned()) return PACELINE_GO_ON;
    leave_unfinished();
  }
  if (is<AwaitsBatchScale>()) return await_scale();
  if (is<AwaitsAgent>()) return await_agent();
  return is<AwaitsAverage>() ? await_average() : await_verdict();
}

SessionCore::Outcome SessionCore::add_gradients(std::span<const paceline_span> pieces, const paceline_stats& stats) {
  if (terms_.abandons && is_abandoned()) {  // This mini-batch was in flight: it is dropped.
    leave_unfinished();
    return std::nullopt;
  }
  if (alone_ && info_.bodies == 1) {  // Its own gradient is the average: nothing is to be copied.
    add_loss(stats);
    samples_ = 0;
    arrive();
    enter(AwaitsAgent{});
    return std::nullopt;
  }
  const Instant began = now();
  std::optional<memory::Buffer> base;
  // What no round has taken yet is taken back, so that no gradient counts twice, and goes with this one.
  if (terms_.accumulates && lease_.body == 0 && (base = window_.withdraw())) samples_ += window_.tag(*base).samples;
  const auto into = window_.writing();
  PACELINE_CHECK(into, kNoBuffer);
  if (lease_.body > 0) base = terms_.abandons && !alone_ ? window_.published() : into;
  const bool fits = numbers_.add(pieces, window_.data(*into).data(), base ? window_.data(*base).data() : nullptr);
  PACELINE_CHECK(fits, kOtherSize);
  add_loss(stats);
  fill_tag(window_.tag(*into), stats);

  const bool is_last =
      lease_.body + 1 == info_.bodies || (terms_.finishes && (is_abandoned() || publication() == may_publish()));
  if (is_last && lease_.payload == PACELINE_BOTH) return apply_own(*into);
  if (!alone_ && (terms_.abandons || is_last)) window_.publish(terms_.abandons);
  span("publish", began, now());
  if (!is_last) {
    ++lease_.body;
    if (!terms_.abandons) return PACELINE_GO_ON;
    enter(AwaitsNextTurn{});
    return std::nullopt;
  }
  samples_ = 0;
  arrive();
  if (alone_) {
    numbers_.scale(window_.data(*into).data(), 1.0 / info_.bodies);
    set_result(window_.data(*into).data());
    enter(AwaitsAgent{});
  } else {
    set_state(State::wait);
    terms_.abandons ? enter(AwaitsAverage{}) : enter(AwaitsVerdict{*into});
  }
  return std::nullopt;
}

/// Before models are averaged each worker steps with what it has of its own.
paceline_outcome SessionCore::apply_own(memory::Buffer sum) {
  numbers_.scale(window_.data(sum).data(), 1.0 / info_.bodies);
  set_result(window_.data(sum).data());
  in_window_ = true;
  return PACELINE_APPLY;
}

/// No further mini-batch of it counts: all are done, or another was first, or a replay ends it here.
bool SessionCore::batch_is_over() const {
  const bool ended = is_abandoned() && (terms_.abandons || lease_.body > 0);
  return lease_.body == info_.bodies || ended ||
         may_publish() == scheduler::Replay::publication(lease_.update, lease_.body);
}

/// A mini-batch that was under way when the batch ended is dropped.
SessionCore::Outcome SessionCore::add_to_batch(std::span<const paceline_span> pieces, const paceline_stats& stats) {
  if (batch_is_over()) {
    ask_for_scale(lease_.body + 1);
    return std::nullopt;
  }
  std::byte* const batch = numbers_.batch();
  const bool fits = numbers_.add(pieces, batch, lease_.body > 0 ? batch : nullptr);
  PACELINE_CHECK(fits, kOtherSize);
  add_loss(stats);
  window_.progress().bodies.store(static_cast<std::uint32_t>(++lease_.body), std::memory_order_release);
  if (!batch_is_over()) return PACELINE_GO_ON;
  ask_for_scale(lease_.body);
  return std::nullopt;
}

/// Asks what the batch weighs; `begun`: its mini-batches, finished or not.
void SessionCore::ask_for_scale(std::int32_t begun) {
  set_state(State::wait);
  enter(AwaitsBatchScale{});
  wire::Message message;
  auto body = message.root().initArrive();
  body.setJob(share_.job);
  body.setRank(share_.rank);
  body.setIteration(lease_.update);
  body.setComputeNs(begun > 0 ? (entered_ - update_began_).count() / begun : 0);
  body.setBodies(lease_.body);
  body.setSince(since_);
  body.setThrough(through());
  outbox_.message(message);
}

/// APPLY: a step with the batch, then step_model(). MOVED: nothing of it counts, the agent has gone on for this worker.
SessionCore::Outcome SessionCore::await_scale() {
  const auto verdict = new_verdict();
  if (!verdict) return wait();
  leave();
  if (verdict->averaged) {
    window_.progress().compute_ns.fetch_add((entered_ - update_began_).count(), std::memory_order_relaxed);
    span("abandoned", update_began_, entered_);
    samples_ = 0;
    ++averagings_;
    begin_update(verdict->next);
    return PACELINE_MOVED;
  }
  update_began_ += now() - entered_;  // The wait is no part of its computing.
  numbers_.scale(numbers_.batch(), verdict->scale);
  set_result(numbers_.batch());
  return PACELINE_APPLY;
}

/// Another ended the update first: the mini-batches that are finished count, the others are not done.
void SessionCore::leave_unfinished() {
  span("abandoned", update_began_, now());
  samples_ = 0;
  set_state(State::wait);
  enter(AwaitsAverage{});
}

/// The update is over (by us or by another): the averaged gradient waits in `latest`, unless we missed it.
SessionCore::Outcome SessionCore::await_average() {
  const std::int64_t update = lease_.update;
  if (executed() < update) return wait();
  leave();
  span("wait", entered_, now());
  const auto buffer = window_.adopt();
  if (!buffer || window_.tag(*buffer).iteration != update) {
    needs_replica_ = true;
    return PACELINE_DROPPED;
  }
  set_result(window_.data(*buffer).data());
  take_members(*buffer);
  begin_update(update + 1);
  return PACELINE_APPLY;
}

// What both have in common
// ---------------------------------------------------------------------------------------------

void SessionCore::take_members(memory::Buffer averaged) {
  if (const auto members = window_.tag(averaged).members; members > 0) members_ = members;
}

/// The one that this mini-batch makes.
std::int64_t SessionCore::publication() const { return scheduler::Replay::publication(lease_.update, lease_.body + 1); }

std::optional<memory::WorkerVerdict> SessionCore::new_verdict() {
  const auto answer = control_.verdict(verdicts_seen_);
  if (!answer) return std::nullopt;
  verdicts_seen_ = answer->number;
  return answer->verdict;
}

/// The mini-batch after the present one; where models are given it is the last of its update.
std::int64_t SessionCore::through() const {
  if (lease_.payload == PACELINE_MODELS) return (lease_.update + 1) * info_.bodies;
  return lease_.update * info_.bodies + lease_.body + (terms_.steps_by_batch() ? 0 : 1);
}

void SessionCore::add_loss(const paceline_stats& stats) {
  losses_.push_back(stats.loss);
  if (losses_.size() > terms_.loss_window) losses_.pop_front();
  samples_ += stats.samples;
  window_.progress().samples.fetch_add(stats.samples, std::memory_order_relaxed);
}

void SessionCore::fill_tag(memory::BufferTag& tag, const paceline_stats& stats) {
  tag.iteration = lease_.update;
  tag.bodies = lease_.body + 1;
  tag.since = since_;
  tag.through = through();
  tag.divisor = 1;
  tag.members = 0;
  tag.loss_sum = std::accumulate(losses_.begin(), losses_.end(), 0.0) / static_cast<double>(losses_.size());
  tag.loss_count = 1;
  tag.samples = samples_;
  tag.learning_rate = stats.learning_rate;
}

}  // namespace paceline::session
