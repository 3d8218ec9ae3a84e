#include "algorithms/cluster/training/training_job.h"

#include <algorithm>
#include <utility>

#include "algorithms/cluster/training/job_entry.h"

// How a leg of a job ends, and what goes on into the next one.

namespace paceline::cluster {

void TrainingJob::take_over(Before before) {
  const Instant now = settings_.clock->now();
  before_ = before.reached;
  ended_before_ = before.ended;
  model_ = before.model;
  stops_soon_ = before.stops_soon;
  wanted_ = before.wanted;
  logged_ = std::move(before.logged);
  objects_ = std::move(before.objects);
  view_.go_on_from(std::move(before.figures));
  hold_.go_on_from(std::move(before.evaluation));
  replicas_.begin_without_start();
  stepped_ = true;
  newest_leg_ = std::max(settings_.leg, before.newest_leg);
  gone_ = before.lost;
  for (const auto& [node, leg] : before.lost) {
    members_.lose(node);
    for (const Rank rank : members_.on(node)) members_.leave(rank);
    hold_.on_node_gone(node);
    replicas_.on_node_gone(node, now);
  }
  for (const Rank rank : members_.local())
    if (std::find(before.places.begin(), before.places.end(), rank) == before.places.end()) gained_.push_back(rank);
  for (const auto& [rank, worker] : before.workers)
    if (!members_.is_local(rank)) outbox_.end_worker(worker, "its place is on another node now");
  for (const Rank rank : members_.local()) {
    const auto worker = before.workers.find(rank);
    if (worker == before.workers.end()) {
      members_.vacate(rank);
    } else {
      members_.join(rank, worker->second);
      to_reopen_.insert(rank);
    }
  }
  for (const auto& [rank, share] : before.unanswered) {
    if (!takes_place(rank)) {
      outbox_.refuse(share.worker, share.request,
                     {ErrorKind::invalid, "worker " + to_string(rank) + " comes too late: the job goes on with " +
                                              settings_.strategy.name + ", under which nobody comes back"});
      continue;
    }
    members_.take_place(rank);
    returns_.take_place(rank, now);
    returns_.on_share(rank, share);
  }
  tell_if_nobody_begins(now);
}

/// Whoever joins begins with what another one has.
void TrainingJob::tell_if_nobody_begins(Instant now) {
  if (settings_.leg == 0 || averagings_ || stopped_ || !to_reopen_.empty()) return;
  if (without_model_.insert(settings_.self).second) {
    wire::Message message;
    auto body = message.root().initSettled();
    body.setJob(settings_.named().value);
    body.setVersion(-1);
    body.setNode(settings_.self.value);
    to_all_nodes(message);
  }
  end_if_nobody_begins(now);
}

void TrainingJob::end_if_nobody_begins(Instant now) {
  if (averagings_ || stopped_ || members_.leader() != settings_.self || !without_model_.contains(settings_.self))
    return;
  const auto others = members_.other_nodes();
  if (std::includes(without_model_.begin(), without_model_.end(), others.begin(), others.end()))
    fail_job("all workers have ended, and nobody has the model that the job was to go on with", now);
}

void TrainingJob::on_settled(const wire::Settled::Reader& settled, Instant now) {
  if (settled.getVersion() >= 0) return hold_.on_settled(settled, now);
  without_model_.insert(NodeId{settled.getNode()});
  end_if_nobody_begins(now);
}

TrainingJob::Before TrainingJob::nothing_before() const {
  Before before{{}, {}, JobEvaluation(settings_.options()), {}, {}, {}};
  for (const NodeId node : settings_.entry.without) before.lost[node] = settings_.leg;
  before.ended = settings_.clock->now();
  return before;
}

/// The newest that is asked for, and fits, holds.
void TrainingJob::on_next_leg(const JobEntry& next, Instant now) {
  newest_leg_ = std::max(newest_leg_, next.leg);
  if (settings_.replays() || next.leg <= settings_.leg || (wanted_ && next.leg <= wanted_->leg)) return;
  if (averagings_ && !check_leg(next)) return;
  wanted_ = next;
  wish_next_leg();
  if (averagings_) follow_up(now);
}

/// The node that leads asks for the end of this one.
void TrainingJob::wish_next_leg() {
  if (!wanted_ || !averagings_ || !averagings_->leads() || hold_.end() || stopped_) return;
  check_leg(*wanted_) ? averagings_->stop_soon() : wanted_.reset();
}

/// Whether the job can go on so with its model.
bool TrainingJob::check_leg(const JobEntry& next) const {
  const auto strategy = job_strategy(next.options, settings_.workers());
  const auto fits = strategy ? check_model(*strategy, model_) : Result<void>(tl::unexpected(strategy.error()));
  if (!fits && averagings_->leads())
    news_.warning("the job does not go on with " + next.options.strategy + ": " + fits.error().text);
  return fits.has_value();
}

/// A worker may have asked for the end: the next leg hears of that (take_over).
std::optional<JobEntry> TrainingJob::next_leg(Version v) const {
  return wanted_ && !stopped_ && v.value < planned_last_ ? wanted_ : std::nullopt;
}

/// Those that it goes on without, and those that were lost since the head has told of it, or before and do not come
/// back with it. The head tells of losses and of legs in one order.
std::map<NodeId, std::int32_t> TrainingJob::lost_in(const JobEntry& next) const {
  std::map<NodeId, std::int32_t> lost;
  for (const NodeId node : next.without) lost[node] = next.leg;
  for (const auto& [node, leg] : gone_)
    if (const auto back = next.back_in.find(node); back == next.back_in.end() || back->second <= leg) lost[node] = leg;
  lost.erase(settings_.self);  // Who thinks so closes it here.
  return lost;
}

JobEntry TrainingJob::newest_entry() const {
  JobEntry newest = wanted_ ? *wanted_ : settings_.entry;
  for (const auto& [node, leg] : lost_in(newest)) newest.without.insert(node);
  return newest;
}

double TrainingJob::time_left_s(Instant now) const {
  const double limit = settings_.options().time_limit_s;
  return limit > 0 ? std::max(1e-3, limit - seconds(now - planned_at_)) : 0;
}

std::map<Rank, JobSettings::Worked> TrainingJob::worked() const {
  auto worked = settings_.worked;
  for (const Rank rank : members_.local()) {
    if (const auto* const window = averagings_->window(rank)) {
      const auto& progress = window->progress();
      worked[rank] = {progress.samples.load(std::memory_order_relaxed),
                      progress.compute_ns.load(std::memory_order_relaxed),
                      progress.wait_ns.load(std::memory_order_relaxed)};
    }
  }
  return worked;
}

void TrainingJob::tell_ledger_of_leg() {
  auto& ledger = averagings_->ledger();
  ledger.forget_from(change_->first);
  auto epochs = ledger.take_closed();
  for (auto& row : ledger.open()) epochs.push_back(row);
  news_.ledger(epochs);
}

void TrainingJob::refuse_since_it_leaves(Rank rank, WorkerId worker, std::uint64_t request) {
  returns_.end(rank);
  outbox_.refuse(worker, request,
                 {ErrorKind::invalid, "worker " + to_string(rank) + " comes too late: its node has left the job"});
}

void TrainingJob::leave(Instant now) {
  tell_ledger_of_leg();
  leaving_.emplace();
  for (const auto& [rank, share] : returns_.unanswered()) refuse_since_it_leaves(rank, share.worker, share.request);
  returns_.stop();
  for (const Rank rank : members_.local()) {
    const auto worker = members_.worker_of(rank);
    if (worker && outbox_.process_id(*worker) >= 0 && (!members_.has_left(rank) || returns_.has(rank))) {
      leaving_->insert(*worker);
      returns_.end(rank);
    }
    if (members_.has_left(rank)) continue;
    lose(rank);
    members_.vacate(rank);
    news_.drained(rank, "worker " + to_string(rank) + " leaves, as was asked: the others go on without it");
  }
  hold_.finish(now);
  averagings_->release(*hold_.end());
  change_.reset();
}

TrainingJob::Before TrainingJob::take_what_goes_on(Instant now) {
  tell_ledger_of_leg();
  Before before{averagings_->reached(now), view_.figures(),     hold_.take_evaluation(),
                std::move(logged_),        std::move(objects_), model_};
  before.places = members_.local();
  for (const auto& [rank, worker] : members_.joined())  // But who may not have loaded a state yet.
    if (!members_.has_left(rank) && !returns_.has(rank)) before.workers[rank] = worker;
  before.unanswered = returns_.unanswered();
  before.lost = lost_in(change_->next);
  before.newest_leg = newest_leg_;
  if (wanted_ && wanted_->leg > change_->next.leg) before.wanted = wanted_;
  before.stops_soon = stops_soon_;
  before.ended = hold_.ended_at();
  return before;
}

}  // namespace paceline::cluster
