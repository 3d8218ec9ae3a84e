#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "algorithms/outer.h"
#include "algorithms/session/session_core.h"
#include "algorithms/step_apart.h"
#include "runtime/collective/kernels.h"
#include "scheduler/record/replay.h"

// Steps with models, and what all steps have in common.

namespace paceline::session {
namespace {

/// Calls `step` with a number of the type, and how to see bytes as such numbers.
template <class Step>
void with_type(memory::Dtype dtype, const Step& step) {
  const auto call = [&](auto type) {
    using T = decltype(type);
    step(type, [](auto& bytes) { return std::span(reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)); });
  };
  dtype == memory::Dtype::f64 ? call(double{}) : call(float{});
}

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
  update_began_ = now();
  window_.progress().bodies.store(0, std::memory_order_release);
  window_.progress().step.store(update, std::memory_order_relaxed);
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
  if (terms_.has_outer_step()) start_next_block(stats.learning_rate);
  return PACELINE_MOVED;
}

SessionCore::Outcome SessionCore::begin_step_model(const paceline_stats& stats) {
  const auto buffer = window_.writing();
  if (is_over() || !buffer) return PACELINE_OVER;
  if (lease_.payload != PACELINE_BOTH) add_loss(stats);  // Else its gradient has told.
  if (lease_.update < next_round_ && lease_.update < last() && !terms_.publishes_every) {
    span("compute", update_began_, now());
    is_average_ = false;
    begin_update(lease_.update + 1);
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
  if (stands_apart()) step_apart_from(buffer);
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
  auto to = window_.writing();
  if (!is_average_) {
    // Published without a round: it goes on from the same numbers, in the buffer that publish() reserved, or in the
    // very one (a run that was resumed between two rounds learns only now when the next one is).
    if (!to) to = window_.withdraw();
    if (to && *to != published)
      std::memcpy(window_.data(*to).data(), window_.data(published).data(), window_.data(*to).size());
  }
  if (!to) return PACELINE_OVER;
  if (stands_apart()) put_step_together(*to, verdict->fresh);
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

/// The one that this mini-batch makes.
std::int64_t SessionCore::publication() const { return scheduler::Replay::publication(lease_.update, lease_.body + 1); }

std::optional<memory::WorkerVerdict> SessionCore::new_verdict() {
  const auto answer = control_.verdict(verdicts_seen_);
  if (!answer) return std::nullopt;
  verdicts_seen_ = answer->number;
  return answer->verdict;
}

/// The model that all got is the mean at a block's end; the next block starts where the outer step carries it. Every
/// worker computes the same from the same numbers.
void SessionCore::start_next_block(double learning_rate) {
  const auto buffer = window_.writing();
  if (!buffer) return;
  auto block = window_.data(*buffer);
  with_type(window_.layout().dtype, [&](auto type, const auto& as) {
    const auto mean = as(block).first(share_.outer_elements), state = as(outer_state_);
    const auto anchor = state.first(share_.outer_elements);
    algorithms::outer_step<decltype(type)>(terms_.outer, anchor, state.last(share_.outer_elements), mean,
                                           learning_rate);
    // The job's model is what the block ended with, not where another one would start.
    if (lease_.update > last()) std::copy(anchor.begin(), anchor.end(), mean.begin());
  });
}

void SessionCore::step_apart_from(memory::Buffer buffer) {
  auto model = window_.data(buffer);
  change_.resize(model.size());
  with_type(window_.layout().dtype, [&](auto type, const auto& as) {
    algorithms::take_step_apart<decltype(type)>(as(model), as(start_), as(change_));
  });
}

void SessionCore::put_step_together(memory::Buffer buffer, bool fresh) {
  auto result = window_.data(buffer);
  const std::int64_t summands = fresh ? window_.tag(buffer).divisor : 1;
  with_type(window_.layout().dtype, [&](auto type, const auto& as) {
    algorithms::put_step_together<decltype(type)>(as(result), summands, as(start_), as(change_));
  });
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
  tag.divisor = 1;
  tag.loss_sum = std::accumulate(losses_.begin(), losses_.end(), 0.0) / static_cast<double>(losses_.size());
  tag.loss_count = 1;
  tag.samples = samples_;
  tag.learning_rate = stats.learning_rate;
}

}  // namespace paceline::session
