#include "algorithms/cluster/head_jobs.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>
#include <variant>

#include "algorithms/cluster/training/peer_names.h"
#include "algorithms/cluster/training/worker_share.h"
#include "algorithms/job/options.h"
#include "runtime/base/job_leg.h"
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

Error no_job(JobId id) { return {ErrorKind::not_found, "no job " + to_string(id) + " runs here"}; }

constexpr const char* kFixed = ": its script says elastic = false, or it was started with --elastic no";

/// Of the head's own, to who drives a job.
wire::JobEvent::Builder to_driver(wire::Message& message, JobId id, const JobEntry& entry) {
  auto event = message.root().initJobEvent();
  event.setJob(id.value);
  event.setNode(entry.driver.node.value);
  event.setTo(entry.driver.peer);
  return event;
}

Error no_places(const std::string& strategy) {
  return {ErrorKind::invalid, "no worker can join or leave a running job under " + strategy +
                                  ": give --workers one number, or take another strategy"};
}

/// Why it has one leg only, or no more; empty: it can have another.
std::string why_no_next_leg(const JobEntry& entry) {
  const auto places = static_cast<std::int32_t>(entry.node_of.size());
  if (!entry.options.replay.empty()) return "it is a replay";
  if (places == 1) return "it has one worker, which averages with nobody";
  if (entry.leg >= kLegsMax)
    return "it has had " + std::to_string(kLegsMax) + " changes, of its strategy and of its nodes";
  const auto present = job_strategy(entry.options, places);
  if (present && present->tiers.back().period.kind == algorithms::Period::Kind::whole_run)
    return "under " + present->name + " its workers have one model at its end only";
  return {};
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
                                             " nodes that are not drained: stop it with `paceline down`, then the "
                                             "replay starts its own");
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
  for (const auto& [node, entry] : around_.links.nodes())
    if (!state_.is_drained(node)) nodes.push_back(node);
  if (nodes.empty())
    return fail(ErrorKind::infeasible,
                "all nodes are drained: kill the agent of one, which is started anew and gets workers again, or start "
                "another cluster");
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
  for (const auto& [node, entry] : around_.links.nodes()) cpus += state_.is_drained(node) ? 0 : entry.cpus;
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
  std::erase_if(told_of_room_, [&](const auto& told) { return told.first == job_in(body); });  // It may not have heard.
  look_at_nodes(now);  // Not before the job has a driver again.
  const JobEntry* const job = directory_.find(job_in(body));
  return json{{"linked", !job || is_linked(*job, node_of_peer(asker.agent))}};
}

Result<json> HeadJobs::stop(const json& body) {
  const JobId id = job_in(body);
  if (!directory_.find(id)) return tl::unexpected(no_job(id));
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
  if (!entry) return tl::unexpected(no_job(id));
  const job::Options& options = entry->options;
  std::set<NodeId> nodes(entry->node_of.begin(), entry->node_of.end());
  const auto is_lost = [&](NodeId node) { return entry->without.contains(node) || state_.is_drained(node); };
  const auto places = static_cast<std::int32_t>(entry->node_of.size());
  // With a node that is new to it, all places but one of each drained node can be taken: they are moved there.
  const auto kept = std::count_if(nodes.begin(), nodes.end(), [&](NodeId node) {
    return state_.is_drained(node) && !entry->without.contains(node);
  });
  tell_of_room();  // Its driver may have been refused it for a moment.
  const auto most =
      places - (has_room(id, *entry) ? kept : std::count_if(entry->node_of.begin(), entry->node_of.end(), is_lost));
  std::erase_if(nodes, is_lost);
  const auto least = std::max<std::int64_t>(options.least_workers(), static_cast<std::int64_t>(nodes.size()));
  if (!options.elastic)
    return fail(ErrorKind::invalid,
                "job " + to_string(id) + " keeps its " + std::to_string(places) + " workers" + kFixed);
  if (nodes.empty()) return fail(ErrorKind::infeasible, "all nodes of job " + to_string(id) + " are drained");
  const auto asked = body.value("workers", std::int64_t{-1});
  if (asked < least || asked > most)
    return fail(ErrorKind::invalid, std::to_string(asked) + " workers cannot be: job " + to_string(id) + " has from " +
                                        std::to_string(least) + " to " + std::to_string(most) +
                                        ", as it was started (--workers 2..8, --minimum), and each of its " +
                                        std::to_string(nodes.size()) + " nodes keeps one");
  const auto strategy = job_strategy(options, places);
  if (strategy && !algorithms::workers_come_back(*strategy, places)) return tl::unexpected(no_places(strategy->name));
  const auto agent = agent_of_driver(id);
  if (!agent) return tl::unexpected(agent.error());
  wire::Message message;
  auto scale = to_driver(message, id, *entry).initScale();
  scale.setWorkers(static_cast<std::int32_t>(asked));
  scale.setText("the job is to have " + std::to_string(asked) + " workers");
  around_.links.send(*agent, message);
  return json{{"job", id.value}, {"workers", asked}, {"least", least}, {"most", most}};
}

Result<transport::Peer> HeadJobs::agent_of_driver(JobId id) const {
  const auto agent = around_.links.nodes().find(directory_.find(id)->driver.node);
  if (agent != around_.links.nodes().end()) return agent->second.peer;
  return fail(ErrorKind::disconnected,
              "the driver of job " + to_string(id) + " cannot be reached now: ask again in a moment");
}

Result<transport::Peer> HeadJobs::agent_to_drain(JobId id) const {
  const JobEntry& entry = *directory_.find(id);
  const auto places = static_cast<std::int32_t>(entry.node_of.size());
  if (places == 1) return fail(ErrorKind::invalid, "job " + to_string(id) + " has one worker: it cannot go on without");
  if (!entry.options.elastic) return fail(ErrorKind::invalid, "no worker can leave job " + to_string(id) + kFixed);
  const auto strategy = job_strategy(entry.options, places);
  if (strategy && !algorithms::workers_come_back(*strategy, places))
    return fail(ErrorKind::invalid, "no worker can leave job " + to_string(id) + " under " + strategy->name +
                                        ": give it another strategy first (`paceline set`)");
  if (!entry.options.replay.empty())
    return fail(ErrorKind::invalid, "no worker can leave job " + to_string(id) + ": it is a replay");
  return agent_of_driver(id);
}

void HeadJobs::tell_drain(const transport::Peer& agent, JobId id, NodeId node, std::optional<std::int32_t> worker) {
  wire::Message message;
  auto drain = to_driver(message, id, *directory_.find(id)).initDrain();
  drain.setWorker(worker.value_or(-1));
  drain.setNode(node.value);
  drain.setAll(!worker);
  drain.setText(worker ? "worker " + std::to_string(*worker) + " is to leave"
                       : "node " + to_string(node) + " is drained: the job's workers there are to leave");
  around_.links.send(agent, message);
}

Result<json> HeadJobs::drain(const json& body) {
  if (!body.contains("node")) return drain_worker(body);
  return drain_node(NodeId{body.value("node", -1)}, body.value("whatever_stays", false));
}

Result<json> HeadJobs::drain_worker(const json& body) {
  const auto& jobs = directory_.jobs();
  if (!body.contains("job") && jobs.size() != 1)
    return fail(ErrorKind::invalid, jobs.empty()
                                        ? "no job runs here"
                                        : std::to_string(jobs.size()) + " jobs run here: say which with --job");
  const JobId id = body.contains("job") ? job_in(body) : jobs.begin()->first;
  const JobEntry* const entry = directory_.find(id);
  if (!entry) return tl::unexpected(no_job(id));
  const auto rank = body.value("worker", std::int64_t{-1});
  const auto places = static_cast<std::int64_t>(entry->node_of.size());
  if (rank < 0 || rank >= places)
    return fail(ErrorKind::invalid, "job " + to_string(id) + " has no worker " + std::to_string(rank) +
                                        ": its workers are worker-0 to worker-" + std::to_string(places - 1));
  const NodeId node = entry->node_of[static_cast<std::size_t>(rank)];
  if (entry->without.contains(node))
    return fail(ErrorKind::not_found, "worker " + std::to_string(rank) + " of job " + to_string(id) +
                                          " is gone: node " + to_string(node) + " was lost");
  const auto agent = agent_to_drain(id);
  if (!agent) return tl::unexpected(agent.error());
  tell_drain(*agent, id, node, static_cast<std::int32_t>(rank));
  return json{{"worker", rank}, {"jobs", {id.value}}};
}

/// All of its jobs or none, unless it ends whatever stays.
Result<json> HeadJobs::drain_node(NodeId node, bool whatever_stays) {
  if (!around_.links.nodes().contains(node))
    return fail(ErrorKind::not_found,
                "there is no node " + to_string(node) + ": `paceline status` shows those that there are");
  std::map<JobId, transport::Peer> told;
  for (const auto& [id, entry] : directory_.jobs()) {
    if (!entry.has_place(node) || entry.without.contains(node)) continue;
    auto agent = agent_to_drain(id);
    if (!agent && !whatever_stays) return tl::unexpected(agent.error());
    if (agent) told.emplace(id, *std::move(agent));
  }
  json answer{{"node", node.value}, {"jobs", json::array()}};
  for (const auto& [id, agent] : told) {
    tell_drain(agent, id, node, std::nullopt);
    answer["jobs"].push_back(id.value);
  }
  state_.on_drained(node);
  return answer;
}

Result<json> HeadJobs::set(const json& body, Instant now) {
  const JobId id = job_in(body);
  const JobEntry* const entry = directory_.find(id);
  if (!entry) return tl::unexpected(no_job(id));
  const auto places = static_cast<std::int32_t>(entry->node_of.size());
  const auto refuse = [&](const std::string& why) {
    return fail(ErrorKind::invalid, "the strategy of job " + to_string(id) + " cannot be changed: " + why);
  };
  if (const auto why = why_no_next_leg(*entry); !why.empty()) return refuse(why);
  job::Options options = entry->options;
  options.strategy = body.value("strategy", options.strategy);
  const json parameters = body.value("parameters", json::object());
  for (const auto& [name, value] : parameters.items()) {
    auto with = algorithms::with_parameter(options.strategy, name, value.is_string() ? value.get<std::string>() : "");
    if (!with) return tl::unexpected(with.error());
    options.strategy = *std::move(with);
  }
  const json factor = body.value("lr_factor", json(options.lr_factor));
  if (const auto unfit = job::unfit("lr_factor", factor); !unfit.empty())
    return fail(ErrorKind::invalid, "lr-factor " + job::shown(factor) + ": " + unfit);
  options.lr_factor = factor.get<double>();
  const auto strategy = job_strategy(options, places);
  if (!strategy) return tl::unexpected(strategy.error());
  const job::Options before = entry->options;
  if (options.strategy == before.strategy && options.lr_factor == before.lr_factor)
    return refuse("it is " + job::in_words(before.strategy, before.lr_factor) + " already");
  act(directory_.begin_next_leg(id, options), now);
  look_at_nodes(now);  // Under the strategy before perhaps nobody could come.
  return json{{"job", id.value},
              {"strategy", strategy->name},
              {"lr_factor", options.lr_factor},
              {"text", job::in_words(options.strategy, options.lr_factor)},
              {"before", before.strategy}};
}

Result<json> HeadJobs::let_go(const json& body) {
  const JobId id = job_in(body);
  if (!directory_.find(id)) return tl::unexpected(no_job(id));
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
  if (auto entry = read_job(open, now)) directory_.on_runs(node, JobId{open.getJob()}, *entry);
}

void HeadJobs::on_registered(NodeId node, const wire::Hello::Reader& hello, Instant now) {
  state_.on_registered(node, hello.getIncarnation(), wire::text(hello.getAddress()), around_.wall());
  act(directory_.on_registered(node, hello.getIncarnation(), JobId{hello.getNewestJob()}), now);
  close_those_over(now);
}

/// Jobs that have workers there fail, and say so, but for those that can go on: they wait for what the other node says.
void HeadJobs::on_node_gone(NodeId node, const transport::Event& gone, Instant now) {
  std::erase_if(told_of_room_, [node](const auto& told) { return told.second == node; });
  act(directory_.on_gone(node, gone.cause, gone.is_silent), now);
}

void HeadJobs::look_at_nodes(Instant now) {
  take_back(now);
  tell_of_room();
}

void HeadJobs::take_back(Instant now) {
  std::vector<std::pair<JobId, NodeId>> lost;
  for (const auto& [id, entry] : directory_.jobs())
    for (const NodeId node : entry.without)
      if (entry.has_place(node)) lost.emplace_back(id, node);
  for (const auto& [id, node] : lost) {
    const JobEntry* const entry = directory_.find(id);
    // As a worker's process is started again: so often an hour.
    if (!entry || !can_join(id, *entry, node) || !directory_.may_come_back(id, node, entry->options.restarts, now))
      continue;
    state_.on_node_back(id, node);
    act(directory_.take_back(id, node, now), now);
  }
}

bool HeadJobs::is_room(JobId id, const JobEntry& entry, NodeId node) const {
  return !entry.incarnation_of.contains(node) && can_join(id, entry, node);
}

bool HeadJobs::has_room(JobId id, const JobEntry& entry) const {
  const auto& nodes = around_.links.nodes();
  return std::any_of(nodes.begin(), nodes.end(), [&](const auto& node) { return is_room(id, entry, node.first); });
}

void HeadJobs::tell_of_room() {
  for (const auto& [id, entry] : directory_.jobs()) {
    const auto agent = agent_of_driver(id);
    if (!agent) continue;
    for (const auto& [node, its] : around_.links.nodes()) {
      if (!is_room(id, entry, node) || !told_of_room_.insert({id, node}).second) continue;
      wire::Message message;
      auto room = to_driver(message, id, entry).initRoom();
      room.setNode(node.value);
      room.setCpus(its.cpus);
      room.setText("node " + to_string(node) + " has no part in the job, and could have one");
      around_.links.send(*agent, message);
    }
  }
}

Result<json> HeadJobs::move_places(const json& body, Instant now) {
  const JobId id = job_in(body);
  const JobEntry* entry = directory_.find(id);
  if (!entry) return tl::unexpected(no_job(id));
  std::map<std::int32_t, NodeId> to;
  for (const json& each : body.value("places", json::array())) {
    if (!each.is_array() || each.size() != 2 || !each[0].is_number_integer() || !each[1].is_number_integer()) continue;
    const auto rank = each[0].get<std::int64_t>();
    const NodeId node{static_cast<std::int32_t>(std::clamp<std::int64_t>(each[1].get<std::int64_t>(), -1, 1 << 20))};
    if (rank < 0 || rank >= static_cast<std::int64_t>(entry->node_of.size()))
      return fail(ErrorKind::invalid, "job " + to_string(id) + " has no place " + std::to_string(rank));
    if (entry->node_of[static_cast<std::size_t>(rank)] != node) to[static_cast<std::int32_t>(rank)] = node;
  }
  if (!to.empty()) {  // Else it was asked for before.
    const auto can = check_move(id, *entry, to);
    if (!can) {  // Its driver may forget them, and hears of them again when they can be.
      for (const auto& [rank, node] : to) told_of_room_.erase({id, node});
      return tl::unexpected(can.error());
    }
    const auto lost = entry->without;
    act(directory_.move_places(id, to), now);
    entry = directory_.find(id);
    if (!entry) return tl::unexpected(no_job(id));
    for (const NodeId node : lost)
      if (!entry->without.contains(node)) state_.on_node_back(id, node);  // Others have its places.
  }
  json answer{{"job", id.value}, {"leg", entry->leg}, {"nodes", json::array()}, {"lost", json::array()}};
  for (const NodeId node : entry->node_of) answer["nodes"].push_back(node.value);
  for (const NodeId node : entry->without) answer["lost"].push_back(node.value);
  return answer;
}

/// Who joins learns the model, and how the job goes on, of a node that has been there.
Result<void> HeadJobs::check_move(JobId id, const JobEntry& entry, const std::map<std::int32_t, NodeId>& to) const {
  std::set<NodeId> left;
  for (std::size_t rank = 0; rank < entry.node_of.size(); ++rank)
    if (!to.contains(static_cast<std::int32_t>(rank))) left.insert(entry.node_of[rank]);
  if (std::none_of(left.begin(), left.end(), [&](NodeId node) { return !entry.without.contains(node); }))
    return fail(ErrorKind::invalid, "no node that is there would have a place left");
  const auto leaves = [&](NodeId node) { return entry.incarnation_of.contains(node) && !entry.has_place(node); };
  for (const auto& [rank, node] : to)
    if (entry.without.contains(node) || leaves(node) || !may_join(id, entry, node))
      return fail(ErrorKind::infeasible, "node " + to_string(node) + " cannot take part in the job now");
  for (const auto& [rank, node] : to)
    if (!is_linked(entry, node))
      return fail(ErrorKind::disconnected,
                  "node " + to_string(node) + " cannot reach all others of the job: ask again in a moment");
  return {};
}

bool HeadJobs::can_join(JobId id, const JobEntry& entry, NodeId node) const {
  return may_join(id, entry, node) && is_linked(entry, node);
}

bool HeadJobs::may_join(JobId id, const JobEntry& entry, NodeId node) const {
  const auto places = static_cast<std::int32_t>(entry.node_of.size());
  const auto strategy = job_strategy(entry.options, places);
  // Where agents carry models this one would have none, and nobody could join there.
  return strategy && algorithms::workers_come_back(*strategy, places) && !weighs_by_samples(*strategy) &&
         why_no_next_leg(entry).empty() && !state_.is_drained(node) && around_.links.nodes().contains(node) &&
         !directory_.is_cut_off(id, node);
}

bool HeadJobs::is_linked(const JobEntry& entry, NodeId node) const {
  return around_.links.are_linked(node, entry.driver.node) &&
         std::all_of(entry.node_of.begin(), entry.node_of.end(), [&](NodeId member) {
           return entry.without.contains(member) || around_.links.are_linked(node, member);
         });
}

void HeadJobs::on_left(NodeId node, const json& body) { directory_.on_left(node, job_in(body)); }

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
  std::erase_if(told_of_room_, [&](const auto& told) { return told.first == close.job; });
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
