#include "algorithms/cluster/training/job_hold.h"

#include <algorithm>

#include "algorithms/session/session_state.h"

namespace paceline::cluster {
namespace {

// At the end, at least: with workers that compute, and where all who are not there are silent.
constexpr Duration kEndPatience = std::chrono::seconds(5), kSilentEndPatience = std::chrono::seconds(1);
constexpr Duration kReplayPatience = std::chrono::seconds(30);  // Nobody was left behind then.

std::int64_t step_of(const memory::Window& window) { return window.progress().step.load(std::memory_order_relaxed); }

}  // namespace

JobHold::JobHold(Around around)
    : around_(std::move(around)),
      evaluation_(around_.settings.options()),
      end_(around_.settings.self, {around_.settings.entry.node_of.begin(), around_.settings.entry.node_of.end()}) {}

// Evaluation
// ------------------------------------------------------------------------------------------------------------

void JobHold::on_executed(const scheduler::AveragingService::Executed& executed, Instant now) {
  if (executed.over) {
    end_.begin(executed.version, now);
    ended_at_ = now;
    if (next_is_released_) return release(executed.version, now);
    look_for_next_leg();
  }
  if (!executed.evaluate || (next_ && !is_due(executed.version))) return;
  to_evaluate_ = {executed.version, executed.evaluators};
  if (averagings_->leads()) begin_evaluation(now);
}

void JobHold::look_for_next_leg() {
  const auto* const newest = evaluation_.newest_outcome();
  const bool ends_for_good = newest != nullptr && !newest->stop.empty();
  if (averagings_->leads() && !ends_for_good && !next_) next_ = around_.next_leg(*end_.version());
}

/// Whether an evaluation is, and not only since the job's leg ends.
bool JobHold::is_due(Version v) const {
  const auto* const newest = evaluation_.newest_outcome();
  const std::int64_t before = std::max(newest != nullptr ? newest->evaluated.update : 0, around_.settings.first);
  return evaluate_every_ > 0 && (v.value + 1) / evaluate_every_ > before / evaluate_every_;
}

void JobHold::begin_evaluation(Instant now) {
  auto [v, evaluators] = *std::exchange(to_evaluate_, std::nullopt);
  std::erase_if(evaluators, [this](Rank rank) { return around_.members.has_left(rank); });
  const bool hold = averagings_->evaluations_hold();
  second_ = hold && evaluators.size() > 1 ? std::optional(evaluators[1]) : std::nullopt;
  const auto evaluator = evaluators.empty() ? std::nullopt : std::optional(evaluators.front());
  evaluation_.begin(v, evaluator, now);
  evaluator ? averagings_->evaluate(*evaluator, v) : end_evaluation(now);
}

void JobHold::on_evaluated(Rank rank, std::int64_t update, double value, Instant now) {
  if (evaluation_.version() != Version{update} || !evaluation_.is_by(rank)) return;
  const JobView& view = around_.view;
  const auto outcome = evaluation_.on_value(value, {seconds(averagings_->clock(now)), view.samples(), view.loss()});
  if (outcome.trouble) around_.news.warning(outcome.trouble->text);
  around_.news.evaluated(outcome.evaluated);
  if (!outcome.stop.empty() && std::exchange(next_, std::nullopt)) around_.news.stopping(outcome.stop);
  if (!outcome.stop.empty() && !end_.version()) {
    around_.news.stopping(outcome.stop);
    if (averagings_->evaluations_hold()) {
      end_here(Version{update}, now);
      send_released(Version{update}, true);
    } else {
      averagings_->stop_soon();
    }
  }
  end_evaluation(now);
}

/// The others go on, or the job ends.
void JobHold::end_evaluation(Instant now) {
  const Version v = *evaluation_.version();
  evaluation_.end();
  end_.wait_from(now);
  end_.is_settling() ? settle(now) : release(v, now);
}

/// Where all are held another one evaluates in its stead; not a third, since the evaluation may be what ends them.
void JobHold::go_on_without(Rank rank, Instant now) {
  if (!evaluation_.is_by(rank)) return;
  const auto another = std::exchange(second_, std::nullopt);
  if (!another || around_.members.has_left(*another)) return end_evaluation(now);
  const Version v = *evaluation_.version();
  evaluation_.begin(v, another, now);
  averagings_->evaluate(*another, v);
}

/// One that does not evaluate, since it is frozen or gone elsewhere, keeps nobody waiting.
void JobHold::look_at_evaluator(Instant now) {
  if (!evaluation_.is_late(now)) return;
  const Rank rank = *evaluation_.evaluator();
  const auto worker = around_.members.worker_of(rank);
  const auto* const window = averagings_->window(rank);
  const bool evaluates = window && session::state_of(*window) == session::State::evaluate;
  const bool is_frozen = worker && around_.outbox.process_state(*worker) == 'T';
  if (is_frozen || !evaluates) end_evaluation(now);
}

void JobHold::ask_for_checkpoint(Instant now) {
  if (!averagings_ || !averagings_->leads() || end_.version() || !evaluation_.wants_checkpoint(now)) return;
  std::optional<Rank> furthest;
  const auto step = [this](Rank rank) { return step_of(*averagings_->window(rank)); };
  for (const auto& [rank, worker] : around_.members.joined()) {
    if (around_.members.has_left(rank) || !evaluation_.may_save(rank) || !averagings_->window(rank)) continue;
    if (!furthest || step(rank) > step(*furthest)) furthest = rank;
  }
  if (!furthest) return;
  evaluation_.ask_to_save(*furthest, now);
  averagings_->control(*furthest)->words().save_wanted.fetch_add(1, std::memory_order_release);
}

void JobHold::on_saved(Rank rank, std::int64_t update) {
  const auto kept = evaluation_.on_saved(rank, update);
  if (!kept) around_.news.warning(kept.error().text);
  if (kept && *kept) around_.news.saved(rank, update + 1);
}

// Released
// --------------------------------------------------------------------------------------------------------------

void JobHold::send_released(Version v, bool ends) {
  wire::Message message;
  auto body = message.root().initReleased();
  body.setJob(around_.settings.named().value);
  body.setVersion(v.value);
  body.setEnds(ends);
  if (next_ && end_.version() == v)
    write_job(body.initNext(), around_.settings.job, *next_, around_.settings.clock->now());
  const auto* const newest = evaluation_.newest_outcome();
  if (newest != nullptr && newest->evaluated.update == v.value + 1) write(newest->evaluated, body.initEvaluated());
  around_.to_all_nodes(message);
}

void JobHold::release(Version v, Instant now) {
  if (averagings_->leads()) send_released(v, false);
  if (to_evaluate_ && to_evaluate_->first <= v) to_evaluate_.reset();
  if (next_ && end_.version().value_or(v) == v) {
    next_is_released_ = true;
    if (!end_.version()) return;  // Not here yet: its workers are held as soon as it is.
    end_.on_released();
    return around_.begin_leg(*next_, v);
  }
  averagings_->release(v);
  if (end_.version() != v) return;
  end_.on_released();
  finished_at_ = now;
}

void JobHold::on_released(const wire::Released::Reader& released, Instant now) {
  if (!averagings_) return;
  const Version v{released.getVersion()};
  if (released.hasNext()) {
    auto next = read_job(released.getNext(), now);
    if (!next) return around_.news.failed(next.error().text);
    next_ = *std::move(next);
  }
  if (released.hasEvaluated()) evaluation_.on_value_elsewhere(evaluated_of(released.getEvaluated()));
  released.getEnds() ? end_here(v, now) : release(v, now);
}

/// What the last leader was to see to, and what it has said to some only, is said again: to the driver, too.
void JobHold::take_lead(Instant now) {
  if (around_.members.all_local_have_left())
    around_.news.warning("node " + to_string(around_.settings.self) +
                         " leads now and has no worker: nothing is evaluated or saved until one joins there");
  if (const auto* const newest = evaluation_.newest_outcome()) {
    around_.news.evaluated(newest->evaluated);
    if (!newest->stop.empty() && end_.version()) around_.news.stopping(newest->stop);
  }
  if (end_.version()) {
    look_for_next_leg();
    send_released(*end_.version(), true);
  }
  if (const auto v = averagings_->released()) send_released(*v, false);
  if (to_evaluate_) begin_evaluation(now);
  end_.wait_from(now);
  settle(now);
}

// The end
// ---------------------------------------------------------------------------------------------------------------

void JobHold::end_here(Version v, Instant now) {
  averagings_->end_at(v);
  end_.begin(v, now);
  settle(now);
}

/// Where the last leader was lost it may have told that node alone that the job ends there.
void JobHold::on_settled(const wire::Settled::Reader& settled, Instant now) {
  end_.on_settled(NodeId{settled.getNode()});
  if (!averagings_) return;
  const Version v{settled.getVersion()};
  if (!end_.version() && !around_.members.lost_nodes().empty() && v < averagings_->last()) {
    end_here(v, now);
    send_released(v, true);
  }
  settle(now);
}

void JobHold::on_node_gone(NodeId node) {
  end_.on_settled(node);
  if (end_.has_settled()) tell_settled();  // Whoever leads now.
}

void JobHold::tell_settled() {
  const NodeId leader = around_.members.leader();
  if (leader == around_.settings.self) return;
  wire::Message message;
  auto body = message.root().initSettled();
  body.setJob(around_.settings.named().value);
  body.setVersion(end_.version()->value);
  body.setNode(around_.settings.self.value);
  averagings_->flush_record();
  around_.outbox.to_node(leader, message, {});
}

/// Whether this worker's model is the last one, or will never be. Who has not come yet may still: it would find nobody
/// who could give it that model.
bool JobHold::is_settled(Rank rank) const {
  const auto* window = averagings_->window(rank);
  return around_.members.has_left(rank) || (window && step_of(*window) > end_.version()->value);
}

void JobHold::settle(Instant now) {
  const JobMembers& members = around_.members;
  while (end_.is_settling()) {
    bool all_there = true, any_alive = false;
    for (const Rank rank : members.local()) {
      if (is_settled(rank)) continue;
      all_there = false;
      any_alive |= !members.has_joined(rank) || around_.life.is_alive(rank, now);
    }
    const JobEnd::Patience patience{.here = end_patience(any_alive), .most = end_patience(true)};
    const JobEnd::Here here{all_there, evaluation_.version().has_value(), averagings_->leads()};
    switch (end_.next(here, patience, now)) {
      case JobEnd::Step::none: return;
      case JobEnd::Step::release: release(*end_.version(), now); break;
      case JobEnd::Step::leave_behind:
        for (const Rank rank : members.local())
          if (!is_settled(rank) && !evaluation_.is_by(rank)) leave_behind(rank);
        break;
      case JobEnd::Step::tell_settled: tell_settled(); break;
    }
  }
}

/// A worker's first mini-batch takes long on a machine that is full, and counts in no median: who answers is not given
/// up as soon as who does not.
Duration JobHold::end_patience(bool is_alive) const {
  if (around_.settings.replays()) return kReplayPatience;
  return std::max<Duration>(is_alive ? kEndPatience : kSilentEndPatience, 10 * averagings_->median_step());
}

void JobHold::leave_behind(Rank rank) {
  around_.lose(rank);
  around_.news.left_ended_job(rank,
                              "worker " + to_string(rank) + " was left behind: the job had ended and it did not come");
  if (const auto worker = around_.members.worker_of(rank))
    around_.outbox.end_worker(*worker, "left behind at the end of the job");  // Else it hears when it comes.
}

/// Of those that were to end by themselves, who has not.
void JobHold::leave_those_behind(Instant now) {
  if (!finished_at_ || evaluation_.version()) return;
  for (const auto& [rank, worker] : around_.members.joined()) {
    const auto* const window = averagings_->window(rank);
    const bool has_ended = window && session::state_of(*window) == session::State::ended;
    if (!around_.members.has_left(rank) && !has_ended &&
        now - *finished_at_ >= end_patience(around_.life.is_alive(rank, now)))
      leave_behind(rank);
  }
}

void JobHold::tick(Instant now) {
  if (!averagings_) return;
  look_at_evaluator(now);
  settle(now);
  leave_those_behind(now);
}

}  // namespace paceline::cluster
