#include "algorithms/cluster/head_jobs.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <variant>

#include "algorithms/cluster/training/peer_names.h"
#include "algorithms/job/options.h"
#include "runtime/base/json.h"

namespace paceline::cluster {
namespace {

using nlohmann::json;

JobId job_in(const json& body) { return JobId{body.value("job", std::uint64_t{0})}; }

/// Ranks in contiguous blocks, as even as possible: neighbours in rank are neighbours in memory.
Result<std::vector<NodeId>> place(std::int32_t workers, const std::vector<NodeId>& nodes) {
  std::vector<NodeId> node_of;
  const auto count = static_cast<std::int64_t>(nodes.size());
  for (std::int64_t rank = 0; rank < workers; ++rank)
    node_of.push_back(nodes[static_cast<std::size_t>(rank * count / workers)]);
  return node_of;
}

/// The same as in the run that is replayed: which sums are made where is a part of the result.
Result<std::vector<NodeId>> place_as_told(const std::vector<std::int32_t>& told, std::int32_t workers,
                                          const std::vector<NodeId>& nodes) {
  std::vector<NodeId> node_of;
  for (const std::int32_t node : told) {
    node_of.emplace_back(node);
    if (std::find(nodes.begin(), nodes.end(), node_of.back()) == nodes.end())
      return fail(ErrorKind::infeasible, "the run had workers on node " + std::to_string(node) +
                                             ", but the cluster has only " + std::to_string(nodes.size()) +
                                             " nodes: stop it with `paceline down`, then the replay starts its own");
  }
  if (node_of.size() != static_cast<std::size_t>(workers))
    return fail(ErrorKind::invalid, "a node is named for " + std::to_string(node_of.size()) +
                                        " workers, but there are " + std::to_string(workers));
  return node_of;
}

}  // namespace

HeadJobs::HeadJobs(Instant start, std::shared_ptr<store::StateStore> store, Around around)
    : around_(std::move(around)),
      state_(std::move(store)),
      directory_(start, state_.newest()),
      writes_from_(start + JobDirectory::kRegisterPatience) {}

std::set<NodeId> HeadJobs::nodes() const {
  std::set<NodeId> needed;
  for (const auto& [id, job] : directory_.jobs())
    std::copy_if(job.node_of.begin(), job.node_of.end(), std::inserter(needed, needed.end()),
                 [&without = job.without](NodeId node) { return !without.contains(node); });
  return needed;
}

Result<json> HeadJobs::submit(const HeadLinks::Asker& asker, const json& body, Instant now) {
  auto options = job::read_options(body);
  if (!options) return tl::unexpected(options.error());
  if (!body.contains("workers"))
    return fail(ErrorKind::invalid, "a job needs at least one worker: submit says nothing of it");
  const auto strategy = job_strategy(*options, options->workers);
  if (!strategy) return tl::unexpected(strategy.error());
  if (!around_.links.ready())
    return fail(ErrorKind::infeasible, "the cluster has " + std::to_string(around_.links.nodes().size()) + " of its " +
                                           std::to_string(around_.links.expected()) +
                                           " nodes, or they do not all reach each other yet: wait for them");
  const NodeId driver_node = node_of_peer(asker.agent);
  const JobDriver driver{driver_node, asker.from, directory_.incarnation(driver_node).value_or(0), asker.id};
  for (const auto& [id, entry] : directory_.jobs())
    if (entry.driver == driver) return answer_of(id);

  std::vector<NodeId> nodes;
  for (const auto& [node, entry] : around_.links.nodes()) nodes.push_back(node);
  auto node_of = options->node_of.empty() ? place(options->workers, nodes)
                                          : place_as_told(options->node_of, options->workers, nodes);
  if (!node_of) return tl::unexpected(node_of.error());
  JobEntry entry{body, *std::move(options), *std::move(node_of), {}, now, driver};
  JobDirectory::Actions actions;
  const JobId id = directory_.add(std::move(entry), actions);
  state_.on_running(id, *directory_.find(id), around_.wall());
  act(actions, now);
  return answer_of(id);
}

Result<json> HeadJobs::answer_of(JobId id) const {
  const JobEntry& entry = *directory_.find(id);
  const auto strategy = job_strategy(entry.options, static_cast<std::int32_t>(entry.node_of.size()));
  if (!strategy) return tl::unexpected(strategy.error());
  json answer{{"job", id.value},
              {"strategy", strategy->name},
              {"batches", strategy->batches},
              {"cluster_nodes", around_.links.nodes().size()}};
  for (const NodeId node : entry.node_of) answer["nodes"].push_back(node.value);
  return answer;
}

Result<json> HeadJobs::move_driver(const HeadLinks::Asker& asker, const json& body, Instant now) {
  std::map<NodeId, std::uint64_t> heard;
  for (const json& each : body.value("heard", json::array()))
    if (each.is_array() && each.size() == 2 && each[0].is_number_integer() && each[1].is_number_unsigned())
      heard[NodeId{each[0].get<std::int32_t>()}] = each[1].get<std::uint64_t>();
  const auto moved = directory_.move_driver(job_in(body), asker.from, node_of_peer(asker.agent), heard, now);
  if (!moved) return tl::unexpected(moved.error());
  act(*moved, now);
  const JobEntry* const job = directory_.find(job_in(body));
  const bool is_linked = !job || std::all_of(job->node_of.begin(), job->node_of.end(), [&](NodeId member) {
    return job->without.contains(member) || around_.links.are_linked(node_of_peer(asker.agent), member);
  });
  return json{{"linked", is_linked}};
}

Result<json> HeadJobs::stop(const json& body) {
  const JobId id = job_in(body);
  if (!directory_.find(id)) return fail(ErrorKind::not_found, "no job " + to_string(id) + " runs here");
  wire::Message message;
  auto stop = message.root().initStopRounds();
  stop.setJob(id.value);
  stop.setReason(body.value("reason", std::string("stopped")));
  around_.links.to_all(message);
  return json::object();
}

void HeadJobs::close(const json& body, Instant now) {
  state_.on_closed(job_in(body), body.value("outcome", json::object()), around_.wall());
  act(directory_.close(job_in(body)), now);
}

void HeadJobs::on_runs(NodeId node, const wire::OpenJob::Reader& open, Instant now) {
  if (auto entry = read_job(open, now)) directory_.on_runs(node, JobId{open.getJob()}, *std::move(entry));
}

void HeadJobs::on_registered(NodeId node, const wire::Hello::Reader& hello, Instant now) {
  state_.on_registered(node, hello.getIncarnation(), wire::text(hello.getAddress()), around_.wall());
  act(directory_.on_registered(node, hello.getIncarnation(), JobId{hello.getNewestJob()}), now);
  close_those_over(now);
}

/// Jobs that have workers there fail, and say so, but for those that can go on: they wait for what the other node says.
void HeadJobs::on_node_gone(NodeId node, const transport::Event& gone, Instant now) {
  act(directory_.on_gone(node, gone.cause, gone.is_silent), now);
}

void HeadJobs::on_driver_gone(NodeId node, const std::string& driver, Instant now) {
  act(directory_.on_driver_gone(node, driver), now);
}

void HeadJobs::on_cut_off(NodeId from, const json& body, Instant now) {
  for (const json& job : body.value("jobs", json::array()))
    act(directory_.on_cut_off(from, NodeId{body.value("node", -1)},
                              JobId{job.is_number() ? job.get<std::uint64_t>() : 0}, body.value("cause", ""), now),
        now);
}

void HeadJobs::tick(Instant now) {
  act(directory_.tick(now), now);
  compare_with_state();
  write_state(now);
}

std::optional<Instant> HeadJobs::next_deadline() const {
  return earlier(earlier(directory_.next_deadline(), state_.next_deadline()), writes_from_);
}

/// An agent runs what an earlier head has closed: it was killed before that was heard there.
void HeadJobs::close_those_over(Instant now) {
  std::vector<JobId> over;
  for (const auto& [id, entry] : directory_.jobs())
    if (state_.is_over(id)) over.push_back(id);
  for (const JobId id : over) act(directory_.close(id), now);
}

/// Once all have said what runs: one that is kept apart from the head may run a job on.
void HeadJobs::compare_with_state() {
  if (compared_ || !around_.links.ready()) return;
  compared_ = true;
  std::set<JobId> running;
  for (const auto& [id, entry] : directory_.jobs()) {
    running.insert(id);
    state_.on_running(id, entry, around_.wall());
  }
  state_.lose_all_but(running, around_.wall());
}

/// Not while the cluster starts: nothing happens then that would be missed.
void HeadJobs::write_state(Instant now) {
  if (writes_from_ && !around_.links.ready() && now < *writes_from_) return;
  writes_from_.reset();
  state_.write(now);
}

void HeadJobs::act(const JobDirectory::Actions& actions, Instant now) {
  for (const auto& action : actions) std::visit([&](const auto& a) { carry_out(a, now); }, action);
  if (!actions.empty()) around_.nodes_changed();
}

void HeadJobs::carry_out(const JobDirectory::Open& open, Instant now) {
  const JobEntry* const entry = directory_.find(open.job);
  const auto to = around_.links.nodes().find(open.node);
  if (!entry || to == around_.links.nodes().end()) return;
  wire::Message message;
  write_job(message.root().initOpenJob(), open.job, *entry, now);
  around_.links.send(to->second.peer, message);
}

void HeadJobs::carry_out(const JobDirectory::Close& close, Instant) {
  state_.on_closed(close.job, nullptr, around_.wall());
  wire::Message message;
  message.root().initCloseJob().setJob(close.job.value);
  around_.links.to_all(message);
}

void HeadJobs::carry_out(const JobDirectory::Lost& lost, Instant) {
  const JobEntry* const entry = directory_.find(lost.job);
  const auto driver = entry ? around_.links.nodes().find(entry->driver.node) : around_.links.nodes().end();
  if (driver == around_.links.nodes().end()) return;
  wire::Message message;
  auto body = message.root().initJobEvent();
  body.setJob(lost.job.value);
  body.initFailed().setText("node " + to_string(lost.node) + " was lost, with its workers" +
                            (lost.cause.empty() ? "" : " (" + lost.cause + ")") +
                            ": go on from the last checkpoint with --resume");
  body.setTo(entry->driver.peer);
  around_.links.send(driver->second.peer, message);
}

void HeadJobs::carry_out(const JobDirectory::GoOn& go_on, Instant) {
  state_.on_node_lost(go_on.job, go_on.lost, go_on.cause, around_.wall());
  wire::Message message;
  auto body = message.root().initNodeGone();
  body.setJob(go_on.job.value);
  body.setNode(go_on.lost.value);
  body.setCause(go_on.cause);
  around_.links.send(agent_peer(go_on.node), message);
}

void HeadJobs::carry_out(const JobDirectory::CloseOn& close, Instant) {
  wire::Message message;
  message.root().initCloseJob().setJob(close.job.value);
  around_.links.send(agent_peer(close.node), message);
}

void HeadJobs::carry_out(const JobDirectory::Driven& driven, Instant) {
  const JobEntry* const entry = directory_.find(driven.job);
  if (!entry) return;
  wire::Message message;
  auto body = message.root().initJobDriven();
  body.setJob(driven.job.value);
  write_driver(body.initDriver(), entry->driver);
  auto heard = body.initHeard(static_cast<unsigned>(driven.heard.size()));
  for (unsigned i = 0; const auto& [node, number] : driven.heard) {
    heard[i].setNode(node.value);
    heard[i++].setNumber(number);
  }
  around_.links.send(agent_peer(driven.node), message);
}

}  // namespace paceline::cluster
