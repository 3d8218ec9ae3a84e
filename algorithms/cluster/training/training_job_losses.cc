#include "algorithms/cluster/training/training_job.h"

#include <algorithm>

#include "algorithms/strategy.h"

// Workers and nodes that end, or leave.

namespace paceline::cluster {

void TrainingJob::on_worker_gone(WorkerId worker, const Ended& ended, Instant now) {
  const auto& [how, failed, restarted] = ended;
  if (leaving_) leaving_->erase(worker);
  const auto found = members_.rank_of(worker);
  if (!found) return returns_.withdraw(worker);
  const Rank rank = *found;
  const bool returns = restarted && comes_back();
  if (returns && !replicas_.has_started(rank)) return start_again(rank, how);
  if (!lose(rank)) {
    if (!returns_.has(rank)) return restarted ? void() : void(members_.vacate(rank));
    if (returns) {  // It was on its way back.
      returns_.begin_anew(rank, now);
      return go_on_without(rank, how, now);
    }
  }
  returns_.end(rank);
  if (failed && !returns && !stopped_) return fail_job("worker " + to_string(rank) + " ended: " + how, now);
  if (rank.value == 0 && !replicas_.has_start() && members_.size() > 1 && !stopped_)
    return fail_job("worker 0 ended before it gave the others the model to start from: " + how, now);
  const std::string text = "worker " + to_string(rank) + " ended (" + how + ")";
  if (returns) {
    returns_.begin(rank, text + ": the others go on without it until its next process is there", now);
  } else if (!hold_.finished_at() && !stopped_) {
    news_.left(rank, text + ": the others go on without it");
  } else if (hold_.end() && !failed) {
    news_.left_ended_job(rank, text + " when the job had");
  }
  if (!returns) members_.vacate(rank);
  hold_.go_on_without(rank, now);
  go_on_without(rank, how, now);
}

/// Whether a worker that ends now has use of another process. Where the agent carries a model on it has that of a
/// worker which was there when the leg began.
bool TrainingJob::comes_back() const {
  if (settings_.leg > 0 && weighs_by_samples(settings_.strategy) && !has_begun_here_) return false;
  const bool goes_on = !hold_.end() || next_leg(*hold_.end());  // Then it joins in that one.
  return algorithms::workers_come_back(settings_.strategy, settings_.workers()) && !stopped_ && goes_on;
}

/// It had not begun to train: the others wait for its next process as they did for it.
void TrainingJob::start_again(Rank rank, const std::string& how) {
  life_.leave(rank);
  replicas_.on_left(rank, settings_.clock->now());
  opened_.erase(rank);
  members_.withdraw(rank);
  news_.warning("worker " + to_string(rank) + " ended (" + how + ") before it began to train, and is started again");
}

/// Whether somebody comes whose place nobody has.
bool TrainingJob::takes_place(Rank rank) const {
  return members_.is_vacant(rank) && !settings_.replays() && !hold_.finished_at() && comes_back();
}

void TrainingJob::drain(Rank rank) {
  if (!members_.is_local(rank) || !members_.has_joined(rank) || members_.has_left(rank) || !averagings_) return;
  if (auto* const control = averagings_->control(rank)) {
    control->words().leave.store(1, std::memory_order_release);
    control->ring();
  }
}

void TrainingJob::on_drained(Rank rank, Instant now) {
  if (averagings_) averagings_->ledger().on_left(rank, false);
  if (!lose(rank)) return;
  members_.vacate(rank);
  news_.drained(rank, "worker " + to_string(rank) + " leaves, as was asked: the others go on without it");
  hold_.go_on_without(rank, now);
  go_on_without(rank, "as was asked", now);
}

void TrainingJob::on_node_gone(NodeId node, const std::string& cause, Instant now) {
  if (!lose_node(node, cause, now)) return;
  if (!averagings_) return end_if_nobody_begins(now);
  averagings_->on_node_gone(node, now);
  follow_up(now);
}

/// Whether it was there until now, and the job goes on.
bool TrainingJob::lose_node(NodeId node, const std::string& cause, Instant now) {
  if (leaving_) return false;
  gone_[node] = std::max(settings_.leg, newest_leg_);  // It may have been on its way back.
  if (!members_.lose(node)) return false;
  const bool tells = members_.leader() == settings_.self;
  const std::string why = "node " + to_string(node) + " is lost" + (cause.empty() ? "" : " (" + cause + ")");
  for (const Rank rank : members_.on(node)) {
    if (!lose(rank) || !tells) continue;
    const bool has_ended = hold_.finished_at() || stopped_;
    const std::string gone = "worker " + to_string(rank) + " is gone: " + why;
    has_ended ? news_.left_ended_job(rank, gone) : news_.left_with_node(rank, gone + "; the others go on without it");
  }
  if (tells) news_.node_lost(node, why);
  if (settings_.entry.node_of.front() == node && !replicas_.has_start() && !stopped_) {
    fail_job("node " + to_string(node) + " was lost before worker 0 gave the others the model to start from", now);
    return false;
  }
  hold_.on_node_gone(node);
  replicas_.on_node_gone(node, now);
  return true;
}

/// In a replay. Its averagings, and what it has to send of them, need no workers any more.
void TrainingJob::end_where_this_node_was_lost() {
  if (!averagings_ || !averagings_->is_cut_off() || hold_.is_evaluating()) return;
  for (const Rank rank : members_.local()) {
    if (!lose(rank)) continue;
    const std::string text =
        "worker " + to_string(rank) + " leaves: its node was lost here in the run that is replayed";
    news_.left(rank, text);
    end_worker(rank, text);
  }
}

void TrainingJob::go_on_without(Rank rank, const std::string& how, Instant now) {
  if (averagings_) {
    averagings_->on_gone(rank, now);
    return follow_up(now);
  }
  // Else nobody tells this node how long the job is, and the other nodes would wait for it for ever.
  if (members_.all_local_have_left() && !stopped_ && settings_.leg == 0)
    return fail_job("all workers of node " + to_string(settings_.self) + " ended before they began to train: " + how,
                    now);
  tell_if_nobody_begins(now);
}

}  // namespace paceline::cluster
