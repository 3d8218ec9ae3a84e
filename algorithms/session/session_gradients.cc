#include <cstring>
#include <optional>
#include <span>

#include "algorithms/session/session_core.h"
#include "runtime/collective/kernels.h"
#include "scheduler/record/replay.h"

// What a worker does with its gradients: sums over the mini-batches of an update, and updates that another one ends.

namespace paceline::session {

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
  if (!into) return PACELINE_OVER;
  if (lease_.body > 0) base = terms_.abandons && !alone_ ? window_.published() : into;
  if (!add_pieces(pieces, window_.data(*into).data(), base ? window_.data(*base).data() : nullptr))
    return PACELINE_OVER;
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
    scale(window_.data(*into).data(), 1.0 / info_.bodies);
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
  scale(window_.data(sum).data(), 1.0 / info_.bodies);
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
  batch_.resize(window_.layout().elements * memory::size_of(window_.layout().dtype));
  if (!add_pieces(pieces, batch_.data(), lease_.body > 0 ? batch_.data() : nullptr)) return PACELINE_OVER;
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
  scale(batch_.data(), verdict->scale);
  set_result(batch_.data());
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
  begin_update(update + 1);
  return PACELINE_APPLY;
}

/// into := base + pieces (base null: into := pieces).
bool SessionCore::add_pieces(std::span<const paceline_span> pieces, std::byte* into, const std::byte* base) {
  const auto& layout = window_.layout();
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

void SessionCore::scale(std::byte* data, double factor) {
  const void* inputs[] = {data};
  collective::sum_into(data, factor, inputs, window_.layout().elements, window_.layout().dtype);
}

}  // namespace paceline::session
