#include "algorithms/cluster/training/training_job.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "algorithms/cluster/training/job_news.h"
#include "algorithms/cluster/training/job_plan.h"
#include "algorithms/cluster/training/strategy_service.h"
#include "algorithms/job/job_event_wire.h"
#include "algorithms/payloads.h"
#include "algorithms/session/job_terms_wire.h"
#include "runtime/base/json.h"
#include "runtime/observe/format.h"

namespace paceline::cluster {
namespace {

using nlohmann::json;
using scheduler::AveragingService;

constexpr Duration kProgressEvery = std::chrono::milliseconds(250);
constexpr Duration kSettleLook = std::chrono::milliseconds(5);
constexpr double kClockMax = 1e9;  // Seconds.

}  // namespace

TrainingJob::TrainingJob(JobSettings settings, scheduler::TaskGraph& graph, collective::Averager& averager,
                         JobOutbox outbox, std::optional<Before> before)
    : settings_(std::move(settings)),
      graph_(graph),
      averager_(averager),
      outbox_(std::move(outbox)),
      news_(settings_.self, settings_.leg, outbox_.to_driver),
      is_back_(settings_.leg > 0 && !before),
      members_(settings_.self, settings_.entry.node_of),
      replicas_(
          settings_, members_, outbox_, news_,
          [this](auto work, auto follows) { beside(std::move(work), std::move(follows)); },
          [this](const Error& error) { fail_job(error.text, settings_.clock->now()); },
          [this](Rank rank) { returns_.readmit(rank); }),
      view_(settings_, members_, outbox_),
      returns_({settings_, outbox_, news_, members_, life_, replicas_,
                [this](auto work, auto follows) { beside(std::move(work), std::move(follows)); }}),
      hold_({settings_, members_, life_, view_, news_, outbox_, [this](Rank rank) { return lose(rank); },
             [this](wire::Message& message) { to_all_nodes(message); }, [this](Version v) { return next_leg(v); },
             [this](const JobEntry& next, Version v) {
               change_ = {next, v.next().value};
             }}) {
  for (const std::int32_t vacant : settings_.options().vacant)
    if (const Rank rank{vacant}; members_.is_local(rank)) members_.vacate(rank);
  if (is_back_) before = nothing_before();
  if (before) take_over(*std::move(before));
}

// Legs
// --------------------------------------------------------------------------------------------------------------------

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

/// The newest that is asked for holds.
void TrainingJob::on_next_leg(const JobEntry& next, Instant now) {
  newest_leg_ = std::max(newest_leg_, next.leg);
  if (settings_.replays() || next.leg <= settings_.leg || (wanted_ && next.leg <= wanted_->leg)) return;
  wanted_ = next;
  wish_next_leg();
  if (averagings_) follow_up(now);
}

/// The node that leads asks for the end of this one.
void TrainingJob::wish_next_leg() {
  if (!wanted_ || !averagings_ || !averagings_->leads() || hold_.end() || stopped_) return;
  const auto strategy = job_strategy(wanted_->options, settings_.workers());
  const auto fits = strategy ? check_model(*strategy, model_) : Result<void>(tl::unexpected(strategy.error()));
  if (!fits) {
    news_.warning("the job goes on with " + settings_.strategy.name + ", not with " + wanted_->options.strategy + ": " +
                  fits.error().text);
    return wanted_.reset();
  }
  averagings_->stop_soon();
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

void TrainingJob::beside(std::function<Result<void>()> work, JobOutbox::Follows follows) {
  outbox_.beside(std::move(work),
                 [here = std::weak_ptr(here_), follows = std::move(follows)](const Result<void>& done) {
                   if (!here.expired()) follows(done);
                 });
}

void TrainingJob::let_go() {
  here_.reset();
  if (averagings_) averagings_->end_work();
}

void TrainingJob::on_open_share(const wire::OpenShare::Reader& share, Instant now) {
  const WorkerId worker{share.getWorker()};
  const Rank rank{share.getRank()};
  if (outbox_.process_id(worker) < 0) return;  // It has ended, and what it said came later.
  const auto refuse = [this, worker, request = share.getRequest()](const std::string& text) {
    outbox_.refuse(worker, request, Error{ErrorKind::invalid, text});
  };
  if (!members_.is_local(rank)) return refuse("worker " + to_string(rank) + " does not belong to this node");
  if (leaving_) return refuse_since_it_leaves(rank, worker, share.getRequest());
  if (takes_place(rank)) {
    members_.take_place(rank);
    returns_.take_place(rank, now);
  }
  if (returns_.has(rank) && !hold_.finished_at()) {
    returns_.on_share(rank,
                      {worker, share.getRequest(), {share.getElements(), share.getOuterElements(), share.getDtype()}});
    if (averagings_) follow_up(now);
    return;
  }
  if (hold_.finished_at() && !stopped_ && !members_.has_left(rank)) hold_.leave_behind(rank);
  if (members_.has_left(rank))
    return refuse("worker " + to_string(rank) +
                  " has left the job: " + (hold_.end() || hold_.finished_at() ? "it has ended" : not_in_time()));
  const bool goes_on = members_.worker_of(rank) == worker && to_reopen_.erase(rank) > 0;
  if (members_.has_joined(rank) && !goes_on) return refuse("a job has one share a worker: me.share() was called twice");
  const SharedModel model{share.getElements(), share.getOuterElements(), share.getDtype()};
  if (const auto fits = check_model(settings_.strategy, model); !fits) return refuse(fits.error().text);
  model_ = model;
  life_.join(rank, now);
  members_.join(rank, worker);
  const auto made = std::make_shared<WorkerShare>(share_of(settings_, rank, model));
  made->terms.goes_on = goes_on;
  beside([made] { return made->make(); },
         [this, made, rank, worker, refuse, request = share.getRequest()](const Result<void>& done) {
           if (done) return on_share_made(rank, worker, request, *made);
           members_.withdraw(rank);
           refuse(done.error().text);
         });
}

void TrainingJob::on_share_made(Rank rank, WorkerId worker, std::uint64_t request, WorkerShare& share) {
  if (members_.has_left(rank)) return;
  wire::Message answer;
  session::write(share.terms, answer.root().initJobTerms());
  outbox_.answer(worker, request, answer, {share.window->fd(), share.read_only});
  news_.memory(static_cast<double>(memory::Window::bytes_needed(share.layout)), members_.local().size());
  if (stopped_) share.control->words().stop.store(1, std::memory_order_release);
  if (averagings_) {
    if (auto joined = averagings_->join(rank, *std::move(share.window), *std::move(share.control)); !joined)
      fail_job(joined.error().text, settings_.clock->now());
  } else {
    opened_.insert_or_assign(rank, Opened{*std::move(share.window), *std::move(share.control)});
  }
}

void TrainingJob::on_plan(const wire::Report::Plan::Reader& said, Instant now) {
  if (averagings_ || stopped_) return;
  if (is_back_) {
    if (const auto fits = learn(said); !fits) return fail_job(fits.error().text, now);
  }
  const auto plan = checked_plan({said.getFirst(), said.getUpdates(), said.getEvaluateEvery(), said.getSamples(),
                                  said.getBatch(), said.getEpoch(), said.getEpochEnd(), said.getLeft()});
  if (!plan) return fail_job(plan.error().text, now);
  auto options = averaging_options(settings_, *plan);
  if (!options) return fail_job(options.error().text, now);
  auto service =
      make_strategy_service({*std::move(options), settings_.strategy, settings_.options().seed, model_.outer_elements},
                            graph_, averager_, outbox_.to_node);
  if (!service) return fail_job(service.error().text, now);
  averagings_ = std::move(*service);
  planned_last_ = plan->updates - 1;
  planned_at_ = now;
  settings_.place = wire::raw(said.getPlace());
  replicas_.open(averagings_);
  hold_.open(averagings_, plan->evaluate_every);
  returns_.open(averagings_);
  settings_.leg > 0 ? averagings_->go_on_from(before_, now) : averagings_->start_clock(now);
  view_.begin(Version{plan->first});
  for (auto& [rank, opened] : std::exchange(opened_, {})) {
    if (auto joined = averagings_->join(rank, std::move(opened.window), std::move(opened.control)); !joined)
      fail_job(joined.error().text, now);
  }
  for (const Rank rank : members_.left()) averagings_->ledger().on_left(rank, settings_.leg == 0);
  for (const Rank rank : members_.left())
    if (!settings_.replays() || !members_.is_vacant(rank)) averagings_->on_gone(rank, now);  // Else the record says it.
  for (const auto& message : std::exchange(early_, {})) message();  // Of nodes that are lost now, what came before.
  for (const NodeId node : members_.lost_nodes()) averagings_->on_node_gone(node, now);
  news_.started(plan->first, plan->updates);
  if (is_back_)
    news_.node_joined(members_.local(), "node " + to_string(settings_.self) +
                                            " takes part in the job from here on: workers can join there");
  if (!is_back_ && !gained_.empty())
    news_.node_joined(gained_, "node " + to_string(settings_.self) + " has more places from here on");
  if (settings_.leg > 0 && !is_back_) {
    news_.changed(plan->first, settings_.strategy.name, seconds(now - ended_before_));  // Each node: one may be lost.
    tell_others(said, now);
  }
  if (stops_soon_) averagings_->stop_soon();
  wish_next_leg();
  follow_up(now);
}

/// Of another node all workers may be gone, and it may be back.
void TrainingJob::tell_others(const wire::Report::Plan::Reader& said, Instant now) {
  wire::Message message;
  auto report = message.root().initReport();
  report.setJob(settings_.named().value);
  report.setPlan(said);
  auto plan = report.getPlan();
  plan.setElements(model_.elements);
  plan.setOuterElements(model_.outer_elements);
  plan.setDtype(model_.dtype);
  plan.setClockS(seconds(averagings_->clock(now)));
  to_all_nodes(message);
}

/// What this node would know if it had been there before.
Result<void> TrainingJob::learn(const wire::Report::Plan::Reader& said) {
  const Duration clock = from_seconds(said.getClockS() > 0 ? std::min(said.getClockS(), kClockMax) : 0);
  model_ = {said.getElements(), said.getOuterElements(), said.getDtype()};
  PACELINE_TRY(check_model(settings_.strategy, model_));
  before_.clock = clock;
  before_.elements = model_.elements;
  before_.dtype = static_cast<memory::Dtype>(model_.dtype);
  settings_.first = said.getFirst();
  if (double& limit = settings_.entry.options.time_limit_s; limit > 0) limit = std::max(1e-3, limit - seconds(clock));
  return {};
}

void TrainingJob::on_arrive(const wire::Arrive::Reader& arrive, Instant now) {
  if (!averagings_) return;
  const Rank rank{arrive.getRank()};
  if (members_.size() == 1) view_.on_loss(arrive.getLoss());  // Alone it publishes nothing.
  if (view_.is_training(Version{arrive.getIteration()}) && !std::exchange(stepped_, true)) news_.first_step(rank);
  has_begun_here_ = true;
  returns_.on_arrive(rank, arrive.getIteration(), now);
  const Version t{arrive.getIteration()};
  const Duration took(arrive.getComputeNs());
  if (!members_.has_left(rank)) {
    using algorithms::Payloads;
    const auto payload = Payloads::of(settings_.strategy).at(t.value, averagings_->last().value);
    const bool in_model = payload != Payloads::Kind::gradients && !algorithms::mixes_batches(settings_.strategy);
    averagings_->ledger().on_done(rank, arrive.getSince(), arrive.getThrough(), in_model);
  }
  if (members_.size() == 1) averagings_->ledger().on_used(rank, t);
  life_.heard(rank, now);
  arrive.getBodies() >= 0 ? averagings_->on_batch(rank, t, arrive.getBodies(), took, now)
                          : averagings_->on_arrival(rank, t, took, now);
  follow_up(now);
}

void TrainingJob::on_report(const wire::Report::Reader& report, Instant now) {
  const Rank rank{report.getRank()};
  if (report.getUpdate() == std::numeric_limits<std::int64_t>::max())
    return;  // None has that number: it has no next one.
  switch (report.which()) {
    case wire::Report::PLAN: return on_plan(report.getPlan(), now);
    case wire::Report::EVALUATED: return hold_.on_evaluated(rank, report.getUpdate(), report.getEvaluated(), now);
    case wire::Report::SAVED: return hold_.on_saved(rank, report.getUpdate());
    case wire::Report::METRIC: return on_metric(rank, report.getUpdate() + 1, report.getMetric(), now);
    case wire::Report::FINAL: return news_.final_model(rank, wire::text(report.getFinal()));
    case wire::Report::FILE:
      return news_.file(wire::text(report.getFile().getPath()), wire::text(report.getFile().getHash()));
    case wire::Report::WARNING: return news_.warning(wire::text(report.getWarning()));
    case wire::Report::STOP: return stop_soon(wire::text(report.getStop()));
    case wire::Report::LEFT: return on_drained(rank, now);
    case wire::Report::FAIL: return fail_job(wire::text(report.getFail()), now);
  }
}

void TrainingJob::on_metric(Rank rank, std::int64_t update, const wire::Report::Metric::Reader& metric, Instant now) {
  const std::string name = wire::text(metric.getName());
  const double clock = averagings_ ? seconds(averagings_->clock(now)) : 0;
  logged_.on_value(name, rank, update, clock, metric.getValue());
  news_.metric(rank, update, clock, name, metric.getValue());
}

void TrainingJob::stop_soon(const std::string& why) {
  if (!std::exchange(stops_soon_, true)) news_.stopping(why);
  if (averagings_) averagings_->stop_soon();
}

// Who is there
// ----------------------------------------------------------------------------------------------------------

void TrainingJob::on_alive(WorkerId worker, Instant now) {
  const auto rank = members_.rank_of(worker);
  if (!rank || members_.has_left(*rank)) return;
  life_.answered(*rank, now);
  if (averagings_) averagings_->on_alive(*rank, now);
}

/// Who computes for long is asked whether it is there; nobody is silent who was not given the chance to speak.
void TrainingJob::look_for_life(Instant now) {
  const auto look = life_.look(now);
  for (const Rank rank : look.ask) outbox_.ask_for_life(*members_.worker_of(rank));
  if (averagings_)
    for (const Rank rank : look.unheard) averagings_->on_alive(rank, now);
}

/// Who does not share its model in time leaves.
void TrainingJob::look_for_start(Instant now) {
  if (!began_) began_ = now;
  for (const Rank rank : starting()) {
    if (seconds(now - *began_) < settings_.options().start_limit_s) {
      if (averagings_) averagings_->on_alive(rank, now);
      continue;
    }
    if (members_.has_joined(rank) && to_reopen_.erase(rank) == 0)
      return fail_job("worker " + to_string(rank) + ": " + not_in_time(), now);
    lose(rank);
    news_.left(rank, "worker " + to_string(rank) + " leaves: " + not_in_time() + "; the others go on without it");
    go_on_without(rank, not_in_time(), now);
  }
}

/// Workers of this node that have not shared their models yet. Worker 0 has when the others can start from its.
std::vector<Rank> TrainingJob::starting() const {
  std::vector<Rank> ranks = members_.local();
  const bool others_wait = members_.size() > 1 && !replicas_.has_start();
  std::erase_if(ranks, [&](Rank rank) {
    return members_.has_left(rank) ||
           (members_.has_joined(rank) && !to_reopen_.contains(rank) && !(rank.value == 0 && others_wait));
  });
  return ranks;
}

std::string TrainingJob::not_in_time() const {
  return observe::format("it did not share its model within %.0f s, see --start-limit",
                         settings_.options().start_limit_s);
}

/// Whether it was there until now.
bool TrainingJob::lose(Rank rank) {
  life_.leave(rank);
  to_reopen_.erase(rank);
  hold_.on_left(rank);
  if (averagings_) averagings_->ledger().on_left(rank, true);
  const bool was_there = members_.leave(rank);
  replicas_.on_left(rank, settings_.clock->now());
  return was_there;
}

void TrainingJob::end_worker(Rank rank, const std::string& why) {
  if (const auto worker = members_.worker_of(rank)) outbox_.end_worker(*worker, why);
}

// Replicas
// ----------------------------------------------------------------------------------------------------------------

void TrainingJob::on_replica_wanted(const wire::Replica::Reader& wanted, NodeId from, Instant now) {
  replicas_.on_wanted(wanted, from, hold_.end(), now);
}

void TrainingJob::on_replica_none(const wire::Replica::Reader& none, NodeId from, Instant now) {
  replicas_.on_none(none, from, now);
}

void TrainingJob::on_captured(const wire::Replica::Reader& replica, process::Fd state) {
  replicas_.on_captured(Rank{replica.getRank()}, replica.getUpdate(), replica.getSize(), std::move(state));
}

void TrainingJob::on_replica_data(const wire::Replica::Reader& header, std::vector<std::byte> bytes) {
  replicas_.on_data(header, std::move(bytes));
}

// Shared objects
// ------------------------------------------------------------------------------------------------------------

void TrainingJob::on_open_object(WorkerId worker, const wire::ObjectKey::Reader& request) {
  const auto given = objects_.open({worker, request.getRequest()}, wire::text(request.getKey()), request.getSize());
  if (!given) return outbox_.refuse(worker, request.getRequest(), given.error());
  if (*given) give(**given);
}

void TrainingJob::on_seal_object(const wire::ObjectKey::Reader& request) {
  for (const auto& object : objects_.on_sealed(wire::text(request.getKey()))) give(object);
}

void TrainingJob::give(const store::NamedObjects::Given& object) {
  wire::Message answer;
  answer.root().initObject().setFill(object.fill);
  outbox_.answer(object.to.worker, object.to.request, answer, {object.object});
}

// Rounds
// --------------------------------------------------------------------------------------------------------------------

void TrainingJob::on_averaging_message(NodeId from, const wire::Envelope::Reader& message, std::vector<std::byte> bulk,
                                       Instant now) {
  if (averagings_) {
    averagings_->on_message(from, message, std::move(bulk), now);
    return follow_up(now);
  }
  auto copy = std::make_shared<wire::Message>(message);
  auto bytes = std::make_shared<std::vector<std::byte>>(std::move(bulk));
  early_.push_back([this, from, copy, bytes] {
    averagings_->on_message(from, copy->root().asReader(), std::move(*bytes), settings_.clock->now());
  });
}

bool TrainingJob::on_reduced(std::uint64_t id, Instant now) {
  if (!averagings_ || !averagings_->on_reduced(id, now)) return false;
  follow_up(now);
  return true;
}

void TrainingJob::follow_up(Instant now) {
  auto events = averagings_->take_events();
  do {
    for (const auto& event : events) std::visit([&](const auto& e) { handle(e, now); }, event);
    returns_.reopen_free_windows();
    events = averagings_->take_events();
  } while (!events.empty());
  if (hold_.end() && !returns_.empty()) replicas_.on_end(*hold_.end(), now);
  hold_.settle(now);
}

void TrainingJob::handle(const AveragingService::Executed& executed, Instant now) {
  view_.on_executed(executed, averagings_->clock(now));
  hold_.on_executed(executed, now);
  returns_.on_executed(executed.version, now);
  auto& ledger = averagings_->ledger();
  ledger.settle(averagings_->done().next().value);
  if (executed.over) ledger.finish(executed.version.next().value);
  if (const auto closed = ledger.take_closed(); !closed.empty()) news_.ledger(closed);
}

void TrainingJob::handle(const AveragingService::Left& left, Instant now) {
  returns_.end(left.rank);
  if (!lose(left.rank)) return;
  const std::string text = why_left(left);
  const auto worker = members_.worker_of(left.rank);
  const bool was_silent = left.silent >= left.waited && !left.replayed;  // Another one would be as slow as this one.
  if (was_silent && comes_back() && worker && outbox_.replace_worker(*worker, text)) {
    returns_.begin(left.rank, text + " until its next process is there", now);
  } else {
    news_.left(left.rank, text);
    end_worker(left.rank, text);
  }
  hold_.go_on_without(left.rank, now);
}

void TrainingJob::handle(const AveragingService::Admitted& admitted, Instant now) {
  returns_.on_admitted(admitted, now);
}

void TrainingJob::handle(const AveragingService::WentOn& went_on, Instant now) {
  if (settings_.replays()) lose_node(went_on.without, "in the run that is replayed", now);
  if (!averagings_->leads() || went_on.without > settings_.self) return;
  wish_next_leg();
  hold_.take_lead(now);
}

void TrainingJob::handle(const AveragingService::Failed& failed, Instant now) { fail_job(failed.text, now); }

std::set<WorkerId> TrainingJob::workers() const {
  std::set<WorkerId> workers;
  for (const auto& [rank, worker] : members_.joined()) workers.insert(worker);
  return workers;
}

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

// The end
// -------------------------------------------------------------------------------------------------------------------

void TrainingJob::fail_job(const std::string& text, Instant now) {
  news_.failed(text);
  stop_everywhere(text, now);
}

void TrainingJob::stop_everywhere(const std::string& reason, Instant now) {
  wire::Message message;
  auto body = message.root().initStopRounds();
  body.setJob(settings_.job.value);
  body.setVersion(averagings_ ? averagings_->done().value : -1);
  body.setReason(reason);
  to_all_nodes(message);
  stop(reason, now);
}

void TrainingJob::stop(const std::string& reason, Instant now) {
  if (std::exchange(stopped_, true)) return;
  hold_.finish(now);
  replicas_.stop();
  returns_.stop();
  if (!leaving_) news_.stopping(reason);  // Else it goes on elsewhere.
  if (averagings_) averagings_->stop();
  for (auto& [rank, opened] : opened_) {
    opened.control.words().stop.store(1, std::memory_order_release);
    opened.control.ring();
  }
}

/// A replay's lost nodes are there, and may not have come to where they were lost.
void TrainingJob::to_all_nodes(wire::Message& message) {
  auto nodes = members_.other_nodes();
  if (settings_.replays()) nodes.insert(members_.lost_nodes().begin(), members_.lost_nodes().end());
  if (averagings_) averagings_->flush_record();
  for (const NodeId node : nodes) outbox_.to_node(node, message, {});
}

void TrainingJob::tick(Instant now) {
  looked_ = now;
  const bool news = now >= next_progress_;
  if (news) {
    look_for_life(now);
    look_for_start(now);
    hold_.ask_for_checkpoint(now);
    if (settings_.replays()) end_where_this_node_was_lost();
  }
  replicas_.tick(now);
  if (averagings_) {
    averagings_->tick(now);
    follow_up(now);
  }
  hold_.tick(now);
  if (!news) return;
  next_progress_ = now + kProgressEvery;
  news_.progress([&](auto progress) {
    write(progress, now);
    if (averagings_) view_.trace(progress.asReader().getTraining(), *averagings_, now);
  });
}

std::optional<Instant> TrainingJob::next_deadline() const {
  if (has_ended_for_a_leg()) return looked_;
  Instant deadline = next_progress_;
  if (hold_.is_settling()) deadline = std::min(deadline, looked_ + kSettleLook);  // Workers tell by their windows only.
  if (const auto replicas = replicas_.due()) deadline = std::min(deadline, *replicas);
  if (averagings_)
    if (const auto rounds = averagings_->next_deadline()) deadline = std::min(deadline, *rounds);
  return deadline;
}

void TrainingJob::write(wire::Progress::Builder progress, Instant now) const {
  view_.write(progress, starting(), began_ ? std::optional(now - *began_) : std::nullopt);
  // What workers do when the job has ended is no training.
  if (averagings_)
    view_.write(progress.initTraining(), *averagings_, averagings_->clock(hold_.finished_at().value_or(now)), now);
}

json TrainingJob::status(Instant now) const {
  wire::Message message;
  const auto progress = message.root().initJobEvent().initProgress();
  write(progress, now);
  auto status = job::to_json(progress.asReader());
  if (auto logged = logged_.list(); !logged.empty()) status["logged"] = std::move(logged);
  if (!hold_.newest().is_null()) status["evaluation"] = hold_.newest();
  return status;
}

}  // namespace paceline::cluster
