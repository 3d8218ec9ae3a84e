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

/// The places that are not taken at the start: each node has as many workers as any other, or one more, and one at
/// least, since from its workers it learns how long the job is.
std::vector<std::int32_t> vacant_after(std::int64_t begin_with, const std::vector<NodeId>& node_of) {
  std::map<NodeId, std::vector<std::int32_t>> on;
  for (std::size_t rank = 0; rank < node_of.size(); ++rank)
    on[node_of[rank]].push_back(static_cast<std::int32_t>(rank));
  std::set<std::int32_t> taken;
  const auto begins = std::max(begin_with, static_cast<std::int64_t>(on.size()));
  for (std::size_t round = 0; static_cast<std::int64_t>(taken.size()) < begins && round < node_of.size(); ++round)
    for (const auto& [node, ranks] : on)
      if (round < ranks.size() && static_cast<std::int64_t>(taken.size()) < begins) taken.insert(ranks[round]);
  std::vector<std::int32_t> vacant;
  for (std::int32_t rank = 0; rank < static_cast<std::int32_t>(node_of.size()); ++rank)
    if (!taken.contains(rank)) vacant.push_back(rank);
  return vacant;
}

Error no_places(const std::string& strategy) {
  return {ErrorKind::invalid, "no worker can join or leave a running job under " + strategy +
                                  ": give --workers one number, or take another strategy"};
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
  auto begins_without = vacant(*options, *strategy, *node_of);
  if (!begins_without) return tl::unexpected(begins_without.error());
  json given = body;
  options->vacant = *std::move(begins_without);
  given.erase("vacant");
  if (!options->vacant.empty()) given["vacant"] = options->vacant;
  JobEntry entry{std::move(given), *std::move(options), *std::move(node_of), {}, now, driver};
  JobDirectory::Actions actions;
  const JobId id = directory_.add(std::move(entry), actions);
  state_.on_running(id, *directory_.find(id), around_.wall());
  act(actions, now);
  return answer_of(id);
}

Result<std::vector<std::int32_t>> HeadJobs::vacant(const job::Options& options, const algorithms::Strategy& strategy,
                                                   const std::vector<NodeId>& node_of) const {
  const std::int64_t places = options.workers;
  std::int64_t cpus = 0;
  for (const auto& [node, entry] : around_.links.nodes()) cpus += entry.cpus;
  const std::int64_t least = std::min<std::int64_t>(options.minimum, places);
  const std::int64_t begins = options.begin_with == 0  ? places
                              : options.begin_with > 0 ? options.begin_with
                                                       : std::clamp(cpus, least, places);
  if (begins >= places) return std::vector<std::int32_t>{};
  if (!algorithms::workers_come_back(strategy, options.workers)) return tl::unexpected(no_places(strategy.name));
  return vacant_after(begins, node_of);
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
  if (!entry.options.vacant.empty()) answer["vacant"] = entry.options.vacant;
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

Result<json> HeadJobs::scale(const json& body) {
  const JobId id = job_in(body);
  const JobEntry* const entry = directory_.find(id);
  if (!entry) return fail(ErrorKind::not_found, "no job " + to_string(id) + " runs here");
  const job::Options& options = entry->options;
  std::set<NodeId> nodes(entry->node_of.begin(), entry->node_of.end());
  const auto is_lost = [&](NodeId node) { return entry->without.contains(node); };
  const auto places = static_cast<std::int32_t>(entry->node_of.size());
  const auto most = places - std::count_if(entry->node_of.begin(), entry->node_of.end(), is_lost);
  std::erase_if(nodes, is_lost);
  const auto least = std::max<std::int64_t>(options.minimum, static_cast<std::int64_t>(nodes.size()));
  const auto asked = body.value("workers", std::int64_t{-1});
  if (asked < least || asked > most)
    return fail(ErrorKind::invalid, std::to_string(asked) + " workers cannot be: job " + to_string(id) + " has from " +
                                        std::to_string(least) + " to " + std::to_string(most) +
                                        ", as it was started (--workers 2..8, --minimum), and each of its " +
                                        std::to_string(nodes.size()) + " nodes keeps one");
  const auto strategy = job_strategy(options, places);
  if (strategy && !algorithms::workers_come_back(*strategy, places)) return tl::unexpected(no_places(strategy->name));
  const auto driver = around_.links.nodes().find(entry->driver.node);
  if (driver == around_.links.nodes().end())
    return fail(ErrorKind::disconnected,
                "the driver of job " + to_string(id) + " cannot be reached now: ask again in a moment");
  wire::Message message;
  auto event = message.root().initJobEvent();
  event.setJob(id.value);
  event.setNode(entry->driver.node.value);
  event.setTo(entry->driver.peer);
  auto scale = event.initScale();
  scale.setWorkers(static_cast<std::int32_t>(asked));
  scale.setText("the job is to have " + std::to_string(asked) + " workers");
  around_.links.send(driver->second.peer, message);
  return json{{"job", id.value}, {"workers", asked}, {"least", least}, {"most", most}};
}

Result<json> HeadJobs::drain(const json& body) {
  const JobId id = job_in(body);
  if (!directory_.find(id)) return fail(ErrorKind::not_found, "no job " + to_string(id) + " runs here");
  for (const json& rank : body.value("ranks", json::array())) {
    if (!rank.is_number_integer()) continue;
    wire::Message message;
    auto drain = message.root().initDrain();
    drain.setJob(id.value);
    drain.setRank(rank.get<std::int32_t>());
    around_.links.to_all(message);
  }
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
