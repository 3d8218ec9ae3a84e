#include <cstring>
#include <optional>
#include <span>

#include "algorithms/session/session_impl.h"
#include "runtime/base/steady_now.h"
#include "runtime/collective/kernels.h"
#include "scheduler/record/replay.h"

// What a worker does with its gradients: sums over the mini-batches of an update, and updates that another one ends.

namespace paceline::session {

paceline_outcome Session::step_gradients(std::span<const paceline_span> pieces, const paceline_stats& stats) {
  result_ = {};
  if (lost_ || stopped()) return PACELINE_OVER;
  if (steps_by_batch_) return add_to_batch(pieces, stats);
  if (!alone_ && !wait_for_turn()) return PACELINE_OVER;
  if (abandons_ && abandoned()) return leave_unfinished();  // This mini-batch was in flight: it is dropped.

  if (alone_ && info_.bodies == 1) {  // Its own gradient is the average: nothing is to be copied.
    add_loss(stats);
    samples_ = 0;
    arrive();
    return go_on_alone();
  }
  const Instant publish_began = steady_now();
  std::optional<memory::Buffer> base;
  // What no round has taken yet is taken back, so that no gradient counts twice, and goes with this one.
  if (accumulates_ && lease_.body == 0 && (base = window_->withdraw())) samples_ += window_->tag(*base).samples;
  const auto into = window_->writing();
  if (!into) return PACELINE_OVER;
  if (lease_.body > 0) base = abandons_ && !alone_ ? window_->published() : into;
  if (!add_pieces(pieces, window_->data(*into).data(), base ? window_->data(*base).data() : nullptr))
    return PACELINE_OVER;
  add_loss(stats);
  fill_tag(window_->tag(*into), stats);

  const bool last = lease_.body + 1 == info_.bodies || (finishes_ && (abandoned() || publication() == may_publish()));
  if (last && lease_.payload == PACELINE_BOTH) return apply_own(*into);
  if (!alone_ && (abandons_ || last)) window_->publish(abandons_);
  span("publish", publish_began, steady_now());
  if (!last) {
    ++lease_.body;
    if (abandons_ && !alone_ && !wait_for_turn()) return PACELINE_OVER;
    return abandons_ && abandoned() ? leave_unfinished() : PACELINE_GO_ON;
  }
  samples_ = 0;
  arrive();
  if (alone_) {
    scale(window_->data(*into).data(), 1.0 / info_.bodies);
    result_ = {window_->data(*into).data(), window_->layout().elements};
    return go_on_alone();
  }
  return abandons_ ? take_abandoned_result() : take_verdict(*into);
}

/// Before models are averaged each worker steps with what it has of its own.
paceline_outcome Session::apply_own(memory::Buffer sum) {
  scale(window_->data(sum).data(), 1.0 / info_.bodies);
  result_ = {window_->data(sum).data(), window_->layout().elements};
  in_window_ = true;
  return PACELINE_APPLY;
}

/// No further mini-batch of it counts: all are done, or another was first, or a replay ends it here.
bool Session::batch_is_over() const {
  const bool ended = abandoned() && (abandons_ || lease_.body > 0);
  return lease_.body == info_.bodies || ended ||
         may_publish() == scheduler::Replay::publication(lease_.update, lease_.body);
}

/// A mini-batch that was under way when the batch ended is dropped.
paceline_outcome Session::add_to_batch(std::span<const paceline_span> pieces, const paceline_stats& stats) {
  if (batch_is_over()) return end_batch(lease_.body + 1);
  batch_.resize(window_->layout().elements * memory::size_of(window_->layout().dtype));
  if (!add_pieces(pieces, batch_.data(), lease_.body > 0 ? batch_.data() : nullptr)) return PACELINE_OVER;
  add_loss(stats);
  window_->progress().bodies.store(static_cast<std::uint32_t>(++lease_.body), std::memory_order_release);
  return batch_is_over() ? end_batch(lease_.body) : PACELINE_GO_ON;
}

/// Asks what the batch weighs; `begun`: its mini-batches, finished or not. APPLY: a step with it, then step_model().
/// MOVED: nothing of it counts, the agent has gone on for this worker.
paceline_outcome Session::end_batch(std::int32_t begun) {
  set_state(State::wait);
  const Instant began = steady_now();
  wire::Message message;
  auto body = message.root().initArrive();
  body.setJob(job_);
  body.setRank(rank_);
  body.setIteration(lease_.update);
  body.setComputeNs(begun > 0 ? (began - update_began_).count() / begun : 0);
  body.setBodies(lease_.body);
  post(message);
  std::optional<memory::ControlPage::Numbered> answer;
  if (!wait_until([&] { return (answer = control_->verdict(verdicts_seen_)).has_value(); })) return PACELINE_OVER;
  verdicts_seen_ = answer->number;
  if (answer->verdict.averaged) {
    window_->progress().compute_ns.fetch_add((began - update_began_).count(), std::memory_order_relaxed);
    span("abandoned", update_began_, began);
    samples_ = 0;
    ++averagings_;
    begin_update(answer->verdict.next);
    return PACELINE_MOVED;
  }
  update_began_ += steady_now() - began;  // The wait is no part of its computing.
  scale(batch_.data(), answer->verdict.scale);
  result_ = {batch_.data(), window_->layout().elements};
  return PACELINE_APPLY;
}

/// Another ended the update first: the mini-batches that are finished count, the others are not done.
paceline_outcome Session::leave_unfinished() {
  span("abandoned", update_began_, steady_now());
  return take_abandoned_result();
}

/// The update is over (by us or by another): the averaged gradient waits in `latest`, unless we missed it.
paceline_outcome Session::take_abandoned_result() {
  set_state(State::wait);
  const Instant begin = steady_now();
  const std::int64_t update = lease_.update;
  samples_ = 0;
  if (!wait_until([&] { return executed() >= update; })) return PACELINE_OVER;
  span("wait", begin, steady_now());
  const auto buffer = window_->adopt();
  const bool mine = buffer && window_->tag(*buffer).iteration == update;
  if (!mine) {
    needs_replica_ = true;
    return PACELINE_DROPPED;
  }
  result_ = {window_->data(*buffer).data(), window_->layout().elements};
  begin_update(update + 1);
  return PACELINE_APPLY;
}

/// into := base + pieces (base null: into := pieces).
bool Session::add_pieces(std::span<const paceline_span> pieces, std::byte* into, const std::byte* base) {
  const auto& layout = window_->layout();
  const std::size_t width = memory::size_of(layout.dtype);
  std::uint64_t at = 0;
  for (const auto& piece : pieces) {
    if (piece.elements > layout.elements - at) return false;
    std::byte* o = into + at * width;
    const std::byte* b = base ? base + at * width : nullptr;
    if (b && piece.data) {
      const void* inputs[] = {b, piece.data};
      collective::sum_into(o, 1.0, inputs, piece.elements, layout.dtype);
    } else if (piece.data) {
      std::memcpy(o, piece.data, piece.elements * width);
    } else if (b) {
      if (b != o) std::memcpy(o, b, piece.elements * width);
    } else {
      std::memset(o, 0, piece.elements * width);
    }
    at += piece.elements;
  }
  return at == layout.elements;
}

void Session::scale(std::byte* data, double factor) {
  const void* inputs[] = {data};
  collective::sum_into(data, factor, inputs, window_->layout().elements, window_->layout().dtype);
}

}  // namespace paceline::session
