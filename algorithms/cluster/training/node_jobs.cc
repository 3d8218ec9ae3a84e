#include "algorithms/cluster/training/node_jobs.h"

#include <utility>

#include "algorithms/cluster/training/peer_names.h"
#include "runtime/base/contained.h"
#include "runtime/base/json.h"

namespace paceline::cluster {

using nlohmann::json;

namespace {

/// What the head says of the whole job, and what workers say that has nothing to do with its averagings.
bool is_of_any_leg(const wire::Envelope::Reader& envelope) {
  switch (envelope.which()) {
    case wire::Envelope::DRAIN:
    case wire::Envelope::STOP_ROUNDS:
    case wire::Envelope::OPEN_SHARE:
    case wire::Envelope::OPEN_OBJECT:
    case wire::Envelope::SEAL_OBJECT: return true;
    case wire::Envelope::REPORT: break;
    default: return false;
  }
  switch (envelope.getReport().which()) {
    case wire::Report::METRIC:
    case wire::Report::FILE:
    case wire::Report::WARNING:
    case wire::Report::STOP:
    case wire::Report::FAIL: return true;
    default: return false;
  }
}

}  // namespace

NodeJobs::NodeJobs(Around around, std::unique_ptr<collective::Averager> averager)
    : around_(std::move(around)), averager_(std::move(averager)) {}

TrainingJob* NodeJobs::find(JobId id) {
  const auto it = jobs_.find(id);
  return it == jobs_.end() ? nullptr : it->second.job.get();
}

/// What goes wrong there fails that job, and none of the others.
void NodeJobs::within(TrainingJob& job, const std::function<void()>& what) {
  const auto done = contained(what);
  if (done) return;
  around_.log.error("job " + to_string(job.settings().job) + ": " + done.error().text);
  (void)contained([&] { job.fail_job(done.error().text, around_.clock.now()); });
}

Result<void> NodeJobs::open(const wire::OpenJob::Reader& open) {
  const JobId id{open.getJob()};
  if (const auto part = jobs_.find(id); part != jobs_.end()) return on_next_leg(id, part->second, open);
  Part opened;
  opened.events = std::make_shared<DriverEvents>(id, around_.self, read_driver(open.getDriver()), around_.tell,
                                                 std::max(0, open.getLeg()));
  auto done = contained([&]() -> Result<void> {
    auto entry = read_job(open, around_.clock.now());
    if (!entry) return tl::unexpected(entry.error());
    auto made = make(id, *std::move(entry), opened);
    if (!made) return tl::unexpected(made.error());
    opened.job = *std::move(made);
    return {};
  });
  if (!done) {
    opened.events->tell([&](auto event) { event.initFailed().setText(done.error().text); });
    return done;
  }
  jobs_[id] = std::move(opened);
  around_.other_nodes_changed();
  hear(later_legs_.take(id));
  hear(early_.open(id));
  return {};
}

void NodeJobs::hear(std::vector<EarlyMessages::Message> kept) {
  for (auto& early : kept) on_message(early.from, early.envelope->root().asReader(), std::move(early.bulk));
}

/// A head that was started anew may say it again.
Result<void> NodeJobs::on_next_leg(JobId id, Part& part, const wire::OpenJob::Reader& open) {
  const Instant now = around_.clock.now();
  const auto entry = read_job(open, now);
  if (!entry) return tl::unexpected(entry.error());
  within(*part.job, [&] { part.job->on_next_leg(*entry, now); });
  skip_legs(id, part);
  return {};
}

/// This node came back with a leg that the others have left out, since they are in a later one.
void NodeJobs::skip_legs(JobId id, Part& part) {
  const auto* const later = part.job->waits_to_begin();
  if (!later || !part.early.has(in_leg(id, later->leg))) return;
  auto made = make(id, *later, part);
  if (!made) return part.job->fail_job(made.error().text, around_.clock.now());
  let_go(std::exchange(part.job, *std::move(made)));
  hear(part.early.open(part.job->settings().named()));
}

/// Where this node comes back it begins with that leg; who is told of a job late begins as all did.
Result<std::unique_ptr<TrainingJob>> NodeJobs::make(JobId id, JobEntry entry, const Part& of) {
  auto strategy = job_strategy(entry.options, static_cast<std::int32_t>(entry.node_of.size()));
  if (!strategy) return tl::unexpected(strategy.error());
  if (entry.without.contains(around_.self)) return fail(ErrorKind::invalid, "openJob without this node");
  const std::int32_t leg = entry.back_in.contains(around_.self) ? entry.leg : 0;
  JobSettings settings{id, around_.self, std::move(entry), *std::move(strategy), &around_.clock, leg};
  if (leg > 0) settings.entry.options.vacant.clear();
  around_.log.info("job " + to_string(id) + ": " + settings.strategy.name + ", " + std::to_string(settings.workers()) +
                   " workers");
  return std::make_unique<TrainingJob>(std::move(settings), graph_, *averager_, outbox_of(id, of));
}

JobOutbox NodeJobs::outbox_of(JobId id, const Part& part) {
  JobOutbox outbox = around_.outbox();
  outbox.to_driver = [events = part.events, changes = part.changes,
                      clock = &around_.clock](const DriverEvents::Write& write) {
    events->tell([&](auto event) {
      write(event);
      changes->on_event(event.asReader(), clock->now());
    });
  };
  outbox.beside = [this, id, beside = std::move(outbox.beside)](auto work, auto follows) {
    beside(std::move(work), [this, id, follows](const Result<void>& done) {
      if (TrainingJob* const job = find(id)) within(*job, [&] { follows(done); });
    });
  };
  return outbox;
}

/// The job's present leg has ended for the next one. That is there before its workers hear of it.
void NodeJobs::begin_next_leg(JobId id, Part& part, Instant now) {
  if (!part.job->change().next.has_place(around_.self)) return part.job->leave(now);
  auto before = std::move(part.job);
  const auto [next, first] = before->change();
  JobSettings settings = before->settings();
  settings.entry = next;
  settings.entry.options.vacant.clear();  // Who is not there has left.
  settings.entry.options.time_limit_s = before->time_left_s(now);
  settings.leg = next.leg;
  settings.first = first;
  settings.place.clear();
  settings.worked = before->worked();
  const auto strategy = job_strategy(settings.entry.options, settings.workers());
  if (strategy) settings.strategy = *strategy;
  around_.log.info("job " + to_string(id) + ": goes on with " + settings.strategy.name + " from update " +
                   std::to_string(first));
  part.job = std::make_unique<TrainingJob>(std::move(settings), graph_, *averager_, outbox_of(id, part),
                                           before->take_what_goes_on(now));
  if (!strategy) part.job->fail_job(strategy.error().text, now);
  before->begin_next_leg();
  let_go(std::move(before));
  around_.other_nodes_changed();
  hear(part.early.open(part.job->settings().named()));
}

/// Its memory is given back beside the loop.
void NodeJobs::let_go(std::unique_ptr<TrainingJob> job) {
  job->let_go();
  around_.outbox().beside([memory = std::shared_ptr<TrainingJob>(std::move(job))]() -> Result<void> { return {}; },
                          [](const Result<void>&) {});
}

void NodeJobs::close(JobId id) {
  (void)later_legs_.take(id);
  const auto it = jobs_.find(id);
  if (it == jobs_.end()) return;
  const Instant now = around_.clock.now();
  closed_[id] = it->second.job->settings().leg;
  const auto workers = it->second.job->workers();
  former_.insert(workers.begin(), workers.end());
  for (auto& early : it->second.early.take_all())  // Others may be in a leg that this node is to come back with.
    (void)later_legs_.keep(id, early.from, early.envelope->root().asReader(), std::move(early.bulk));
  Part closed = std::move(it->second);
  wire::Message last;
  closed.job->write(last.root().initJobEvent().initClosed(), now);
  closed.job->close(now);
  let_go(std::move(closed.job));
  jobs_.erase(it);
  std::erase_if(cut_off_, [id](const auto& one) { return one.first.first == id; });
  around_.other_nodes_changed();
  closed.events->tell([&](auto event) { event.setClosed(last.root().getJobEvent().getClosed()); });
}

// Messages
// -----------------------------------------------------------------------------------------------------------------

void NodeJobs::on_message(const transport::Peer& from, const wire::Envelope::Reader& envelope, transport::Frame bulk) {
  const auto named = wire::job_of(envelope);
  if (!named) return;
  if (is_session(from) && former_.contains(worker_of(from))) return;
  const JobId id = without_leg(*named);
  const NodeId node = node_of_peer(from);
  if (const auto part = jobs_.find(id); part != jobs_.end()) {
    if (!is_of_this_leg(part->second, *named, from, envelope, bulk)) return;
    return is_session(from) ? on_session(*part->second.job, worker_of(from), envelope)
                            : on_agent(*part->second.job, node, envelope, std::move(bulk));
  }
  if (!is_session(from) && node.value < 0) return;
  const auto closed = closed_.find(id);
  const bool is_later_leg = !is_session(from) && leg_of(*named) > (closed == closed_.end() ? 0 : closed->second);
  if (!is_later_leg && !early_.is_to_come(id)) return;
  if (!(is_later_leg ? later_legs_ : early_).keep(id, from, envelope, std::move(bulk)))
    around_.log.error(from + ": a message of job " + to_string(id) + ", which this node does not know yet, is lost: " +
                      std::to_string(EarlyMessages::kMax) + " wait already");
}

/// Else it comes too late, or is kept for when that leg is there.
bool NodeJobs::is_of_this_leg(Part& part, JobId named, const transport::Peer& from,
                              const wire::Envelope::Reader& envelope, transport::Frame& bulk) {
  const std::int32_t leg = leg_of(named), present = part.job->settings().leg;
  if (leg == present || is_of_any_leg(envelope)) return true;
  if (leg < present || is_session(from)) return false;
  if (!part.early.keep(named, from, envelope, std::move(bulk)))
    around_.log.error(from + ": a message of a later leg of job " + to_string(without_leg(named)) +
                      " is lost: " + std::to_string(EarlyMessages::kMax) + " wait already");
  skip_legs(without_leg(named), part);
  return false;
}

void NodeJobs::on_session(TrainingJob& job, WorkerId worker, const wire::Envelope::Reader& envelope) {
  const Instant now = around_.clock.now();
  switch (envelope.which()) {
    case wire::Envelope::OPEN_SHARE: return job.on_open_share(envelope.getOpenShare(), now);
    case wire::Envelope::ARRIVE: return job.on_arrive(envelope.getArrive(), now);
    case wire::Envelope::REPORT: return job.on_report(envelope.getReport(), now);
    case wire::Envelope::REPLICA_WANTED: return job.on_replica_wanted(envelope.getReplicaWanted(), around_.self, now);
    case wire::Envelope::OPEN_OBJECT: return job.on_open_object(worker, envelope.getOpenObject());
    case wire::Envelope::SEAL_OBJECT: return job.on_seal_object(envelope.getSealObject());
    default: return;
  }
}

void NodeJobs::on_agent(TrainingJob& job, NodeId from, const wire::Envelope::Reader& envelope, transport::Frame bulk) {
  const Instant now = around_.clock.now();
  if (job.lost_nodes().contains(from)) return;  // It may not know yet.
  switch (envelope.which()) {
    case wire::Envelope::RELEASED: return job.on_released(envelope.getReleased(), now);
    case wire::Envelope::SETTLED: return job.on_settled(envelope.getSettled(), now);
    case wire::Envelope::REPLICA_WANTED: return job.on_replica_wanted(envelope.getReplicaWanted(), from, now);
    case wire::Envelope::REPLICA_NONE: return job.on_replica_none(envelope.getReplicaNone(), from, now);
    case wire::Envelope::REPLICA_DATA: return job.on_replica_data(envelope.getReplicaData(), std::move(bulk));
    case wire::Envelope::REPORT:
      if (envelope.getReport().isPlan()) job.on_plan_elsewhere(envelope.getReport().getPlan(), now);
      return;
    case wire::Envelope::DRAIN: return job.drain(Rank{envelope.getDrain().getRank()});
    case wire::Envelope::STOP_ROUNDS: return job.stop(wire::text(envelope.getStopRounds().getReason()), now);
    case wire::Envelope::ACTIVATE:
    case wire::Envelope::PARTIAL:
    case wire::Envelope::SHARE:
    case wire::Envelope::GONE:
    case wire::Envelope::BATCH:
    case wire::Envelope::AWAITED:
    case wire::Envelope::ENDING:
    case wire::Envelope::FLUSHED:
    case wire::Envelope::EXCHANGE: return job.on_averaging_message(from, envelope, std::move(bulk), now);
    default: return;
  }
}

void NodeJobs::on_unreadable(const wire::Envelope::Reader& envelope, const std::string& why) {
  const auto id = wire::job_of(envelope);
  if (TrainingJob* const job = id ? find(without_leg(*id)) : nullptr)
    within(*job, [&] { job->fail_job(why, around_.clock.now()); });
}

void NodeJobs::on_captured(WorkerId worker, std::string_view packet, process::Fd state) {
  const auto message = wire::Received::parse_packet(packet);
  if (!message) return around_.log.error("worker " + to_string(worker) + ": " + message.error().text);
  const auto read = message->visit([&](const wire::Envelope::Reader& root) -> Result<void> {
    if (!root.isReplica()) return fail(ErrorKind::invalid, "a captured state comes with no word of it");
    const auto replica = root.getReplica();
    const JobId named{replica.getJob()};
    TrainingJob* const job = find(without_leg(named));
    if (job && job->settings().named() == named && job->owns(worker))
      within(*job, [&] { job->on_captured(replica, std::move(state)); });
    return {};
  });
  if (!read) around_.log.error("worker " + to_string(worker) + ": " + read.error().text);
}

void NodeJobs::on_alive(WorkerId worker) {
  for (const auto& [id, part] : jobs_) part.job->on_alive(worker, around_.clock.now());
}

void NodeJobs::on_worker_gone(WorkerId worker, const TrainingJob::Ended& ended) {
  former_.erase(worker);
  for (const auto& [id, part] : jobs_)
    if (part.job->owns(worker))
      within(*part.job, [&, &its = *part.job] { its.on_worker_gone(worker, ended, around_.clock.now()); });
}

void NodeJobs::on_driven(const wire::JobDriven::Reader& driven) {
  const auto it = jobs_.find(JobId{driven.getJob()});
  if (it == jobs_.end()) return;
  std::uint64_t heard = 0;
  for (const auto each : driven.getHeard())
    if (NodeId{each.getNode()} == around_.self) heard = each.getNumber();
  it->second.events->on_driven(read_driver(driven.getDriver()), heard);
}

void NodeJobs::on_node_gone(const wire::NodeGone::Reader& gone) {
  TrainingJob* const job = find(JobId{gone.getJob()});
  if (!job) return;
  within(*job, [&] { job->on_node_gone(NodeId{gone.getNode()}, wire::text(gone.getCause()), around_.clock.now()); });
  cut_off_.erase({JobId{gone.getJob()}, NodeId{gone.getNode()}});  // It may come back.
  around_.other_nodes_changed();
}

void NodeJobs::fail_those_on(NodeId node, const std::string& why) {
  for (const auto& [id, part] : jobs_)
    if (part.job->other_nodes().contains(node))
      within(*part.job, [&, &its = *part.job] { its.fail_job(why, around_.clock.now()); });
}

void NodeJobs::on_averaged() {
  const Instant now = around_.clock.now();
  for (const auto id : averager_->completed()) {
    bool taken = false;
    for (auto& [job_id, part] : jobs_) {
      if (taken) break;
      within(*part.job, [&, &owner = *part.job] { taken = owner.on_reduced(id, now); });
    }
  }
}

void NodeJobs::tick(Instant now) {
  for (auto& [id, part] : jobs_)
    if (part.job->has_ended_for_a_leg()) begin_next_leg(id, part, now);
  close_those_left();
  for (const auto& [id, part] : jobs_)
    if (const auto deadline = part.job->next_deadline(); deadline && *deadline <= now)
      within(*part.job, [&, &due = *part.job] { due.tick(now); });
}

void NodeJobs::close_those_left() {
  std::vector<JobId> left;
  for (const auto& [id, part] : jobs_)
    if (part.job->has_left()) left.push_back(id);
  for (const JobId id : left) {
    close(id);
    around_.left(id);
  }
}

std::optional<Instant> NodeJobs::next_deadline() const {
  std::optional<Instant> next;
  for (const auto& [id, part] : jobs_) next = earlier(next, part.job->next_deadline());
  return next;
}

// What is known of them
// ----------------------------------------------------------------------------------------------------

std::set<NodeId> NodeJobs::other_nodes() const {
  std::set<NodeId> nodes;
  for (const auto& [id, part] : jobs_) nodes.merge(part.job->other_nodes());
  return nodes;
}

std::set<JobId> NodeJobs::open_ones() const {
  std::set<JobId> open;
  for (const auto& [id, part] : jobs_) open.insert(id);
  return open;
}

std::vector<std::pair<JobId, JobEntry>> NodeJobs::entries() const {
  std::vector<std::pair<JobId, JobEntry>> entries;
  for (const auto& [id, part] : jobs_) {
    entries.emplace_back(id, part.job->newest_entry());
    entries.back().second.driver = part.events->driver();
  }
  return entries;
}

bool NodeJobs::have_workers() const {
  return std::any_of(jobs_.begin(), jobs_.end(),
                     [](const auto& part) { return part.second.job && part.second.job->has_workers(); });
}

json NodeJobs::status(Instant now) const {
  json rows = json::array();
  for (const auto& [id, part] : jobs_) {
    rows.push_back(part.job->status(now));
    if (json changes = part.changes->list(now); !changes.empty()) rows.back()["changes"] = std::move(changes);
  }
  return rows;
}

std::vector<JobId> NodeJobs::cut_off(NodeId node, const std::string& how) {
  std::vector<JobId> jobs;
  for (const auto& [id, part] : jobs_)
    if (part.job->other_nodes().contains(node) && cut_off_.try_emplace({id, node}, how).second) jobs.push_back(id);
  return jobs;
}

std::vector<NodeJobs::CutOff> NodeJobs::all_cut_off() const {
  std::vector<CutOff> all;
  for (const auto& [apart, how] : cut_off_)
    if (const auto job = jobs_.find(apart.first);
        job != jobs_.end() && job->second.job->other_nodes().contains(apart.second))
      all.push_back({apart.first, apart.second, how});
  return all;
}

}  // namespace paceline::cluster
