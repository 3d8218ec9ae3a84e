#include "algorithms/cluster/training/training_job.h"

#include <algorithm>
#include <utility>

#include "algorithms/cluster/training/job_plan.h"
#include "algorithms/cluster/training/strategy_service.h"
#include "algorithms/session/session_state.h"
#include "runtime/base/json.h"
#include "runtime/observe/format.h"

namespace paceline::cluster {
namespace {

using nlohmann::json;
using scheduler::AveragingService;

constexpr Duration kProgressEvery = std::chrono::milliseconds(250);
// At the end, at least: with workers that compute, and where all who are not there are silent.
constexpr Duration kEndPatience = std::chrono::seconds(5), kSilentEndPatience = std::chrono::seconds(1);
constexpr Duration kReplayPatience = std::chrono::seconds(30);  // Nobody was left behind then.
constexpr Duration kSettleLook = std::chrono::milliseconds(5);

session::State state_of(const memory::Window* window) {
  return window ? static_cast<session::State>(window->progress().state.load(std::memory_order_relaxed))
                : session::State::compute;
}

std::int64_t step_of(const memory::Window& window) { return window.progress().step.load(std::memory_order_relaxed); }

}  // namespace

TrainingJob::TrainingJob(JobSettings settings, scheduler::TaskGraph& graph, collective::Averager& averager,
                         JobOutbox outbox)
    : settings_(std::move(settings)),
      graph_(graph),
      averager_(averager),
      outbox_(std::move(outbox)),
      members_(settings_.self, settings_.entry.node_of),
      replicas_(
          settings_, members_, outbox_,
          [this](auto work, auto follows) { beside(std::move(work), std::move(follows)); },
          [this](const Error& error) { fail_job(error.text, settings_.clock->now()); }),
      evaluation_(settings_.options()),
      end_(settings_.self, {settings_.entry.node_of.begin(), settings_.entry.node_of.end()}),
      view_(settings_, members_, outbox_) {}

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
    outbox_.answer(worker, request, fail(ErrorKind::invalid, text), {});
  };
  if (!members_.is_local(rank)) return refuse("worker " + to_string(rank) + " does not belong to this node");
  if (finished_at_ && !stopped_ && !members_.has_left(rank)) leave_behind(rank);
  if (members_.has_left(rank))
    return refuse("worker " + to_string(rank) +
                  " has left the job: " + (finished_at_ ? "it has ended" : not_in_time()));
  if (members_.has_joined(rank)) return refuse("a job has one share a worker: me.share() was called twice");
  const SharedModel model{share.getElements(), share.getOuterElements(), share.getDtype()};
  if (const auto fits = check_model(settings_.strategy, model); !fits) return refuse(fits.error().text);
  life_.join(rank, now);
  members_.join(rank, worker);
  const auto made = std::make_shared<WorkerShare>(share_of(settings_, rank, model));
  beside([made] { return made->make(); },
         [this, made, rank, worker, refuse, request = share.getRequest()](const Result<void>& done) {
           if (done) return on_share_made(rank, worker, request, *made);
           members_.withdraw(rank);
           refuse(done.error().text);
         });
}

void TrainingJob::on_share_made(Rank rank, WorkerId worker, std::uint64_t request, WorkerShare& share) {
  if (members_.has_left(rank)) return;
  outbox_.answer(worker, request, share.answer, {share.window->fd(), share.read_only});
  outer_elements_ = share.outer_elements;
  const auto bytes = static_cast<double>(memory::Window::bytes_needed(share.layout));
  outbox_.to_driver({{"event", "memory"},
                     {"node", settings_.self.value},
                     {"bytes_worker", bytes},
                     {"bytes_node", bytes * static_cast<double>(members_.local().size())}});
  if (stopped_) share.control->words().stop.store(1, std::memory_order_release);
  if (averagings_) {
    if (auto joined = averagings_->join(rank, *std::move(share.window), *std::move(share.control)); !joined)
      fail_job(joined.error().text, settings_.clock->now());
  } else {
    opened_.insert_or_assign(rank, Opened{*std::move(share.window), *std::move(share.control)});
  }
}

void TrainingJob::on_plan(const json& said, Instant now) {
  if (averagings_ || stopped_) return;
  const auto plan = read_plan(said);
  if (!plan) return fail_job(plan.error().text, now);
  auto options = averaging_options(settings_, *plan);
  if (!options) return fail_job(options.error().text, now);
  auto service =
      make_strategy_service({*std::move(options), settings_.strategy, settings_.options().seed, outer_elements_},
                            graph_, averager_, outbox_.to_node);
  if (!service) return fail_job(service.error().text, now);
  averagings_ = std::move(*service);
  replicas_.open(averagings_);
  averagings_->start_clock(now);
  view_.begin(Version{plan->first});
  for (auto& [rank, opened] : std::exchange(opened_, {})) {
    if (auto joined = averagings_->join(rank, std::move(opened.window), std::move(opened.control)); !joined)
      fail_job(joined.error().text, now);
  }
  for (const Rank rank : members_.left()) averagings_->on_gone(rank, now);
  for (const auto& message : std::exchange(early_, {})) message();  // Of nodes that are lost now, what came before.
  for (const NodeId node : members_.lost_nodes()) averagings_->on_node_gone(node, now);
  outbox_.to_driver(
      {{"event", "started"}, {"node", settings_.self.value}, {"updates", plan->updates}, {"first", plan->first}});
  drain(now);
}

void TrainingJob::on_arrive(const wire::Arrive::Reader& arrive, Instant now) {
  if (!averagings_) return;
  if (members_.size() == 1) view_.on_loss(arrive.getLoss());  // Alone it publishes nothing.
  if (view_.is_training(Version{arrive.getIteration()}) && !std::exchange(stepped_, true))
    outbox_.to_driver({{"event", "first_step"}, {"worker", arrive.getRank()}});
  const Rank rank{arrive.getRank()};
  const Version t{arrive.getIteration()};
  const Duration took(arrive.getComputeNs());
  life_.heard(rank, now);
  arrive.getBodies() >= 0 ? averagings_->on_batch(rank, t, arrive.getBodies(), took, now)
                          : averagings_->on_arrival(rank, t, took, now);
  drain(now);
}

void TrainingJob::on_report(const wire::Report::Reader& report, Instant now) {
  const std::string kind = wire::text(report.getKind());
  const Rank rank{report.getRank()};
  if (kind == "plan") {
    const auto plan = parse_json(wire::text(report.getText()));
    if (plan.is_object()) on_plan(plan, now);
  } else if (kind == "evaluated") {
    on_evaluated(rank, report.getUpdate(), report.getValue(), now);
  } else if (kind == "saved") {
    for (const json& event : evaluation_.on_saved(rank, report.getUpdate())) outbox_.to_driver(event);
  } else if (kind == "metric") {
    on_metric(report, now);
  } else if (kind == "final") {
    outbox_.to_driver({{"event", "final"}, {"worker", rank.value}, {"model", wire::text(report.getText())}});
  } else if (kind == "file") {
    outbox_.to_driver(
        {{"event", "file"}, {"path", wire::text(report.getName())}, {"hash", wire::text(report.getText())}});
  } else if (kind == "warning") {
    outbox_.to_driver({{"event", "warning"}, {"text", wire::text(report.getText())}});
  } else if (kind == "stop") {
    if (!std::exchange(stops_soon_, true))
      outbox_.to_driver(
          {{"event", "stopping"}, {"node", settings_.self.value}, {"text", wire::text(report.getText())}});
    if (averagings_) averagings_->stop_soon();
  } else if (kind == "fail") {
    fail_job(wire::text(report.getText()), now);
  }
}

void TrainingJob::on_metric(const wire::Report::Reader& report, Instant now) {
  const std::string name = wire::text(report.getName());
  const Rank rank{report.getRank()};
  const double clock = averagings_ ? seconds(averagings_->clock(now)) : 0;
  logged_.on_value(name, rank, report.getUpdate() + 1, clock, report.getValue());
  outbox_.to_driver({{"event", "metric"},
                     {"worker", rank.value},
                     {"update", report.getUpdate() + 1},
                     {"clock_s", clock},
                     {"name", name},
                     {"value", report.getValue()}});
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
    if (members_.has_joined(rank)) return fail_job("worker " + to_string(rank) + ": " + not_in_time(), now);
    lose(rank);
    tell_left(rank, "worker " + to_string(rank) + " leaves: " + not_in_time() + "; the others go on without it");
    go_on_without(rank, not_in_time(), now);
  }
}

/// Workers of this node that have not shared their models yet. Worker 0 has when the others can start from its.
std::vector<Rank> TrainingJob::starting() const {
  std::vector<Rank> ranks = members_.local();
  const bool others_wait = members_.size() > 1 && !replicas_.has_start();
  std::erase_if(ranks, [&](Rank rank) {
    return members_.has_left(rank) || (members_.has_joined(rank) && !(rank.value == 0 && others_wait));
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
  evaluation_.on_left(rank);
  return members_.leave(rank);
}

void TrainingJob::tell_left(Rank rank, const std::string& text) {
  outbox_.to_driver({{"event", "left"}, {"worker", rank.value}, {"text", text}});
}

void TrainingJob::tell_ended(Rank rank, const std::string& text) {
  outbox_.to_driver({{"event", "left"}, {"worker", rank.value}, {"ended", true}, {"text", text}});
}

// Evaluation
// ------------------------------------------------------------------------------------------------------------

void TrainingJob::handle(const AveragingService::Executed& executed, Instant now) {
  view_.on_executed(executed, averagings_->clock(now));
  if (executed.over) end_.begin(executed.version, now);
  if (!executed.evaluate) return;
  to_evaluate_ = {executed.version, executed.evaluator};
  if (averagings_->leads()) begin_evaluation(now);
}

void TrainingJob::begin_evaluation(Instant now) {
  const auto [v, evaluator] = *std::exchange(to_evaluate_, std::nullopt);
  evaluation_.begin(v, evaluator, now);
  evaluator ? averagings_->evaluate(*evaluator, v) : end_evaluation(now);
}

void TrainingJob::on_evaluated(Rank rank, std::int64_t update, double value, Instant now) {
  if (evaluation_.version() != Version{update}) return;
  const auto outcome =
      evaluation_.on_value(rank, value, {seconds(averagings_->clock(now)), view_.samples(), view_.loss()});
  for (const json& event : outcome.events) outbox_.to_driver(event);
  if (!outcome.stop.empty() && !end_.version()) {
    outbox_.to_driver({{"event", "stopping"}, {"node", settings_.self.value}, {"text", outcome.stop}});
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
void TrainingJob::end_evaluation(Instant now) {
  const Version v = *evaluation_.version();
  evaluation_.end();
  end_.wait_from(now);
  end_.is_settling() ? settle(now) : release(v, now);
}

/// One that does not evaluate, since it is frozen or gone elsewhere, keeps nobody waiting.
void TrainingJob::look_at_evaluator(Instant now) {
  if (!evaluation_.is_late(now)) return;
  const Rank rank = *evaluation_.evaluator();
  const auto worker = members_.worker_of(rank);
  const bool frozen = worker && outbox_.process_state(*worker) == 'T';
  if (frozen || state_of(averagings_->window(rank)) != session::State::evaluate) end_evaluation(now);
}

/// Of the worker that is furthest: it stands still least likely.
void TrainingJob::ask_for_checkpoint(Instant now) {
  if (!averagings_ || !averagings_->leads() || end_.version() || !evaluation_.wants_checkpoint(now)) return;
  std::optional<Rank> furthest;
  const auto step = [this](Rank rank) { return step_of(*averagings_->window(rank)); };
  for (const auto& [rank, worker] : members_.joined()) {
    if (members_.has_left(rank) || !evaluation_.may_save(rank) || !averagings_->window(rank)) continue;
    if (!furthest || step(rank) > step(*furthest)) furthest = rank;
  }
  if (!furthest) return;
  evaluation_.ask_to_save(*furthest, now);
  averagings_->control(*furthest)->words().save_wanted.fetch_add(1, std::memory_order_release);
}

void TrainingJob::send_released(Version v, bool ends) {
  wire::Message message;
  auto body = message.root().initReleased();
  body.setJob(settings_.job.value);
  body.setVersion(v.value);
  body.setEnds(ends);
  const auto value = evaluation_.value_at(v);
  body.setEvaluated(value.has_value());
  body.setValue(value.value_or(0));
  to_all_nodes(message);
}

void TrainingJob::release(Version v, Instant now) {
  if (averagings_->leads()) send_released(v, false);
  if (to_evaluate_ && to_evaluate_->first <= v) to_evaluate_.reset();
  averagings_->release(v);
  if (end_.version() != v) return;
  end_.on_released();
  finished_at_ = now;
}

void TrainingJob::on_released(const wire::Released::Reader& released, Instant now) {
  if (!averagings_) return;
  const Version v{released.getVersion()};
  if (released.getEvaluated()) evaluation_.on_value_elsewhere(v, released.getValue());
  released.getEnds() ? end_here(v, now) : release(v, now);
}

void TrainingJob::end_here(Version v, Instant now) {
  averagings_->end_at(v);
  end_.begin(v, now);
  settle(now);
}

/// Where the last leader was lost it may have told that node alone that the job ends there.
void TrainingJob::on_settled(const wire::Settled::Reader& settled, Instant now) {
  end_.on_settled(NodeId{settled.getNode()});
  const Version v{settled.getVersion()};
  if (averagings_ && !end_.version() && !members_.lost_nodes().empty() && v < averagings_->last()) {
    end_here(v, now);
    send_released(v, true);
  }
  if (averagings_) settle(now);
}

void TrainingJob::tell_settled() {
  const NodeId leader = members_.leader();
  if (leader == settings_.self) return;
  wire::Message message;
  auto body = message.root().initSettled();
  body.setJob(settings_.job.value);
  body.setVersion(end_.version()->value);
  body.setNode(settings_.self.value);
  averagings_->flush_record();
  outbox_.to_node(leader, message, {});
}

/// What the last leader was to see to, and what it has said to some only, is said again.
void TrainingJob::take_lead(Instant now) {
  if (end_.version()) send_released(*end_.version(), true);
  if (const auto v = averagings_->released()) send_released(*v, false);
  if (to_evaluate_) begin_evaluation(now);
  end_.wait_from(now);
  settle(now);
}

/// Whether this worker's model is the last one, or will never be. Who has not come yet may still: it would find nobody
/// who could give it that model.
bool TrainingJob::is_settled(Rank rank) {
  const auto* window = averagings_->window(rank);
  return members_.has_left(rank) || (window && step_of(*window) > end_.version()->value);
}

void TrainingJob::settle(Instant now) {
  while (end_.is_settling()) {
    bool all_there = true, any_alive = false;
    for (const Rank rank : members_.local()) {
      if (is_settled(rank)) continue;
      all_there = false;
      any_alive |= !members_.has_joined(rank) || life_.is_alive(rank, now);
    }
    const JobEnd::Patience patience{.here = end_patience(any_alive), .most = end_patience(true)};
    const JobEnd::Here here{all_there, evaluation_.version().has_value(), averagings_->leads()};
    switch (end_.next(here, patience, now)) {
      case JobEnd::Step::none: return;
      case JobEnd::Step::release: release(*end_.version(), now); break;
      case JobEnd::Step::leave_behind:
        for (const Rank rank : members_.local())
          if (!is_settled(rank) && !evaluation_.is_by(rank)) leave_behind(rank);
        break;
      case JobEnd::Step::tell_settled: tell_settled(); break;
    }
  }
}

/// A worker's first mini-batch takes long on a machine that is full, and counts in no median: who answers is not given
/// up as soon as who does not.
Duration TrainingJob::end_patience(bool is_alive) const {
  if (replays()) return kReplayPatience;
  return std::max<Duration>(is_alive ? kEndPatience : kSilentEndPatience, 10 * averagings_->median_step());
}

void TrainingJob::leave_behind(Rank rank) {
  lose(rank);
  tell_ended(rank, "worker " + to_string(rank) + " was left behind: the job had ended and it did not come");
  if (const auto worker = members_.worker_of(rank))
    outbox_.end_worker(*worker, "left behind at the end of the job");  // Else it hears when it comes.
}

// Replicas
// ----------------------------------------------------------------------------------------------------------------

void TrainingJob::on_replica_wanted(const wire::Replica::Reader& wanted, NodeId from, Instant now) {
  replicas_.on_wanted(wanted, from, end_.version(), now);
}

void TrainingJob::on_replica_none(const wire::Replica::Reader& none, NodeId from, Instant now) {
  replicas_.on_none(none, from, now);
}

void TrainingJob::on_captured(Rank rank, std::int64_t update, std::uint64_t size, process::Fd state) {
  replicas_.on_captured(rank, update, size, std::move(state));
}

void TrainingJob::on_replica_data(const wire::Replica::Reader& header, std::vector<std::byte> bytes) {
  replicas_.on_data(header, std::move(bytes));
}

// Shared objects
// ------------------------------------------------------------------------------------------------------------

void TrainingJob::on_open_object(WorkerId worker, const wire::ObjectKey::Reader& request) {
  const auto given = objects_.open({worker, request.getRequest()}, wire::text(request.getKey()), request.getSize());
  if (!given) return outbox_.answer(worker, request.getRequest(), tl::unexpected(given.error()), {});
  if (*given) give(**given);
}

void TrainingJob::on_seal_object(const wire::ObjectKey::Reader& request) {
  for (const auto& object : objects_.on_sealed(wire::text(request.getKey()))) give(object);
}

void TrainingJob::give(const store::NamedObjects::Given& object) {
  outbox_.answer(object.to.worker, object.to.request, json{{"fill", object.fill}}, {object.object});
}

// Rounds
// --------------------------------------------------------------------------------------------------------------------

void TrainingJob::on_averaging_message(NodeId from, const wire::Envelope::Reader& message, std::vector<std::byte> bulk,
                                       Instant now) {
  if (averagings_) {
    averagings_->on_message(from, message, std::move(bulk), now);
    return drain(now);
  }
  auto copy = std::make_shared<wire::Message>(message);
  auto bytes = std::make_shared<std::vector<std::byte>>(std::move(bulk));
  early_.push_back([this, from, copy, bytes] {
    averagings_->on_message(from, copy->root().asReader(), std::move(*bytes), settings_.clock->now());
  });
}

bool TrainingJob::on_reduced(std::uint64_t id, Instant now) {
  if (!averagings_ || !averagings_->on_reduced(id, now)) return false;
  drain(now);
  return true;
}

void TrainingJob::drain(Instant now) {
  for (const auto& event : averagings_->take_events()) std::visit([&](const auto& e) { handle(e, now); }, event);
  settle(now);
}

void TrainingJob::handle(const AveragingService::Left& left, Instant now) {
  const std::string text =
      left.replayed ? "worker " + to_string(left.rank) + " left here in the run that is replayed: it leaves"
      : left.silent < left.waited
          ? observe::format(
                "worker %d was waited for at update %lld for %.1f s, longer than patience allows: it leaves, the "
                "others go on without it",
                left.rank.value, static_cast<long long>(left.version.value), seconds(left.waited))
          : observe::format(
                "worker %d was silent for %.1f s while the others waited for it at update %lld: it leaves, the others "
                "go on without it",
                left.rank.value, seconds(left.silent), static_cast<long long>(left.version.value));
  if (!lose(left.rank)) return;
  tell_left(left.rank, text);
  if (const auto worker = members_.worker_of(left.rank)) outbox_.end_worker(*worker, text);
  if (evaluation_.is_by(left.rank)) end_evaluation(now);
}

void TrainingJob::handle(const AveragingService::WentOn& went_on, Instant now) {
  if (replays()) lose_node(went_on.without, "in the run that is replayed", now);
  if (averagings_->leads() && went_on.without < settings_.self) take_lead(now);
}

void TrainingJob::handle(const AveragingService::Failed& failed, Instant now) { fail_job(failed.text, now); }

void TrainingJob::on_worker_gone(WorkerId worker, const std::string& how, bool failed, Instant now) {
  const auto found = members_.rank_of(worker);
  if (!found) return;
  const Rank rank = *found;
  if (!lose(rank)) return;
  if (failed && !stopped_) return fail_job("worker " + to_string(rank) + " ended: " + how, now);
  if (rank.value == 0 && !replicas_.has_start() && members_.size() > 1 && !stopped_)
    return fail_job("worker 0 ended before it gave the others the model to start from: " + how, now);
  if (!finished_at_ && !stopped_) {
    tell_left(rank, "worker " + to_string(rank) + " ended (" + how + "): the others go on without it");
  } else if (end_.version() && !failed) {
    tell_ended(rank, "worker " + to_string(rank) + " ended (" + how + ") when the job had");
  }
  if (evaluation_.is_by(rank)) end_evaluation(now);
  go_on_without(rank, how, now);
}

void TrainingJob::on_node_gone(NodeId node, const std::string& cause, Instant now) {
  if (!lose_node(node, cause, now) || !averagings_) return;
  averagings_->on_node_gone(node, now);
  drain(now);
}

/// Whether it was there until now, and the job goes on.
bool TrainingJob::lose_node(NodeId node, const std::string& cause, Instant now) {
  if (!members_.lose(node)) return false;
  const bool tells = members_.leader() == settings_.self;
  const std::string why = "node " + to_string(node) + " is lost" + (cause.empty() ? "" : " (" + cause + ")");
  for (const Rank rank : members_.on(node)) {
    if (!lose(rank) || !tells) continue;
    const bool has_ended = finished_at_ || stopped_;
    outbox_.to_driver({{"event", "left"},
                       {"worker", rank.value},
                       {"ended", has_ended},
                       {"text", "worker " + to_string(rank) + " is gone: " + why +
                                    (has_ended ? "" : "; the others go on without it")}});
  }
  if (tells) outbox_.to_driver({{"event", "node_lost"}, {"node", node.value}, {"text", why}});
  if (settings_.entry.node_of.front() == node && !replicas_.has_start() && !stopped_) {
    fail_job("node " + to_string(node) + " was lost before worker 0 gave the others the model to start from", now);
    return false;
  }
  end_.on_settled(node);
  if (end_.has_settled()) tell_settled();  // Whoever leads now.
  replicas_.on_node_gone(node, now);
  return true;
}

/// In a replay. Its averagings, and what it has to send of them, need no workers any more.
void TrainingJob::end_where_this_node_was_lost() {
  if (!averagings_ || !averagings_->is_cut_off() || evaluation_.version()) return;
  for (const Rank rank : members_.local()) {
    if (!lose(rank)) continue;
    const std::string text =
        "worker " + to_string(rank) + " leaves: its node was lost here in the run that is replayed";
    tell_left(rank, text);
    if (const auto worker = members_.worker_of(rank)) outbox_.end_worker(*worker, text);
  }
}

void TrainingJob::go_on_without(Rank rank, const std::string& how, Instant now) {
  if (averagings_) {
    averagings_->on_gone(rank, now);
    return drain(now);
  }
  // Else nobody tells this node how long the job is, and the other nodes would wait for it for ever.
  if (members_.all_local_have_left() && !stopped_)
    fail_job("all workers of node " + to_string(settings_.self) + " ended before they began to train: " + how, now);
}

// The end
// -------------------------------------------------------------------------------------------------------------------

void TrainingJob::fail_job(const std::string& text, Instant now) {
  outbox_.to_driver({{"event", "failed"}, {"text", text}});
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
  finished_at_ = now;
  replicas_.stop();
  outbox_.to_driver({{"event", "stopping"}, {"node", settings_.self.value}, {"text", reason}});
  if (averagings_) averagings_->stop();
  for (auto& [rank, opened] : opened_) {
    opened.control.words().stop.store(1, std::memory_order_release);
    opened.control.ring();
  }
}

/// A replay's lost nodes are there, and may not have come to where they were lost.
void TrainingJob::to_all_nodes(wire::Message& message) {
  auto nodes = members_.other_nodes();
  if (replays()) nodes.insert(members_.lost_nodes().begin(), members_.lost_nodes().end());
  if (averagings_) averagings_->flush_record();
  for (const NodeId node : nodes) outbox_.to_node(node, message, {});
}

void TrainingJob::tick(Instant now) {
  looked_ = now;
  const bool news = now >= next_progress_;
  if (news) {
    look_for_life(now);
    look_for_start(now);
    ask_for_checkpoint(now);
    if (replays()) end_where_this_node_was_lost();
  }
  if (averagings_) {
    averagings_->tick(now);
    drain(now);
  }
  replicas_.tick(now);
  look_at_evaluator(now);
  if (averagings_) settle(now);
  leave_those_behind(now);
  if (!news) return;
  next_progress_ = now + kProgressEvery;
  auto event = view(now);
  if (averagings_) view_.trace(event, *averagings_, now);
  event["event"] = "progress";
  outbox_.to_driver(event);
}

/// Of those that were to end by themselves, who has not.
void TrainingJob::leave_those_behind(Instant now) {
  if (!finished_at_ || evaluation_.version() || !averagings_) return;
  for (const auto& [rank, worker] : members_.joined())
    if (!members_.has_left(rank) && state_of(averagings_->window(rank)) != session::State::ended &&
        now - *finished_at_ >= end_patience(life_.is_alive(rank, now)))
      leave_behind(rank);
}

std::optional<Instant> TrainingJob::next_deadline() const {
  Instant deadline = next_progress_;
  if (end_.is_settling()) deadline = std::min(deadline, looked_ + kSettleLook);  // Workers tell by their windows only.
  if (const auto replicas = replicas_.due()) deadline = std::min(deadline, *replicas);
  if (averagings_)
    if (const auto rounds = averagings_->next_deadline()) deadline = std::min(deadline, *rounds);
  return deadline;
}

json TrainingJob::view(Instant now) const {
  auto view = view_.starting(starting(), began_ ? std::optional(now - *began_) : std::nullopt);
  // What workers do when the job has ended is no training.
  if (averagings_) view_.add(view, *averagings_, averagings_->clock(finished_at_.value_or(now)), now);
  return view;
}

json TrainingJob::status(Instant now) const {
  auto status = view(now);
  if (auto logged = logged_.list(); !logged.empty()) status["logged"] = std::move(logged);
  if (!evaluation_.newest().is_null()) status["evaluation"] = evaluation_.newest();
  return status;
}

}  // namespace paceline::cluster
