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
    news_.changed(plan->first, settings_.strategy.name, settings_.options().lr_factor,
                  seconds(now - ended_before_));  // Each node: one may be lost.
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
  if (stopped_) return;
  close(now);
  if (!leaving_) news_.stopping(reason);  // Else it goes on elsewhere.
}

void TrainingJob::close(Instant now) {
  if (std::exchange(stopped_, true)) return;
  hold_.finish(now);
  replicas_.stop();
  returns_.stop();
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
