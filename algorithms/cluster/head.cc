#include "algorithms/cluster/head.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "actors/protocol_wire.h"
#include "algorithms/cluster/name_requests.h"
#include "algorithms/cluster/training/logged_values.h"
#include "algorithms/cluster/training/peer_names.h"
#include "algorithms/job/options.h"
#include "runtime/base/contained.h"
#include "runtime/base/json.h"
#include "runtime/base/readable.h"

namespace paceline::cluster {
namespace {

using nlohmann::json;

constexpr Duration kStatusPatience = std::chrono::milliseconds(80);
constexpr Duration kListPatience = std::chrono::seconds(4);
constexpr Duration kMissingPatience = std::chrono::milliseconds(200);  // For nodes that are about to register.
constexpr Duration kNodesPatience = std::chrono::seconds(5);           // For one that is started again.
constexpr std::size_t kWaitingMax = 1024;
constexpr const char* kDriveVerb = "drive";
/// What `status` may ask for, and what agents call it.
constexpr std::pair<const char*, const char*> kLists[] = {
    {"actors", "actors"}, {"workers", "worker_list"}, {"tasks", "tasks"}, {"spans", "spans"}};

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

Head::Head(Options options, std::unique_ptr<transport::Transport> transport)
    : options_(std::move(options)),
      transport_(std::move(transport)),
      state_(options_.store),
      jobs_(options_.start, state_.newest()),
      writes_from_(options_.start + JobDirectory::kRegisterPatience) {}

void Head::poll(Instant now) {
  while (auto event = transport_->poll(Duration::zero())) {
    if (event->kind == transport::Event::Kind::disconnected) on_gone(*event, now);
    if (event->kind != transport::Event::Kind::message || event->frames.empty()) continue;
    auto message = wire::Received::parse(std::move(event->frames.front()));
    if (!message) {
      (void)transport_->send(event->peer, {wire::refusal(message.error())});
      continue;
    }
    const auto handled =
        message->visit([&](const wire::Envelope::Reader& envelope) { on_message(event->peer, envelope, now); });
    if (handled) continue;
    (void)message->visit([&](const wire::Envelope::Reader& envelope) {
      if (envelope.isRequest()) reply(asker_of(event->peer, envelope.getRequest()), tl::unexpected(handled.error()));
    });
  }
}

Head::Asker Head::asker_of(const transport::Peer& peer, const wire::Request::Reader& request) {
  return {peer, wire::text(request.getFrom()), request.getId()};
}

void Head::on_message(const transport::Peer& peer, const wire::Envelope::Reader& envelope, Instant now) {
  switch (envelope.which()) {
    case wire::Envelope::HELLO: return on_hello(peer, envelope.getHello(), now);
    case wire::Envelope::OPEN_JOB: return on_runs(peer, envelope.getOpenJob(), now);
    case wire::Envelope::REQUEST: {
      const auto request = envelope.getRequest();
      const Asker asker = asker_of(peer, request);
      const auto body = parse_json(wire::text(request.getJson()));
      return on_request(asker, wire::text(request.getVerb()), body.is_object() ? body : json::object(), now);
    }
    case wire::Envelope::REPLY: {  // An agent's answer to node_status or has_name.
      const auto answer = envelope.getReply();
      if (of_names_.contains(answer.getId())) {
        const auto said = parse_json(wire::text(answer.getJson()));
        return act(names_.on_confirmed(answer.getId(), said.is_object() && said.value("has", false)), now);
      }
      const auto query = queries_.find(answer.getId());
      if (query == queries_.end()) return;
      query->second.answers[node_of_peer(peer)] = parse_json(wire::text(answer.getJson()));
      if (static_cast<std::int32_t>(query->second.answers.size()) >= options_.nodes) finish_status(answer.getId(), now);
      return;
    }
    default: return;
  }
}

void Head::on_hello(const transport::Peer& peer, const wire::Hello::Reader& hello, Instant now) {
  const NodeId node = node_of_peer(peer);
  if (node.value < 0) return;
  ++epoch_;
  nodes_[node] = {peer, wire::text(hello.getAddress()), hello.getCpus(), hello.getMemory(), hello.getPid(), epoch_, 0};
  (void)transport_->send(peer, {wire::welcome(peer, node)});
  broadcast_nodes();
  state_.on_registered(node, hello.getIncarnation(), wire::text(hello.getAddress()), options_.wall());
  act(jobs_.on_registered(node, hello.getIncarnation(), JobId{hello.getNewestJob()}), now);
  close_those_over(now);
  answer_drivers(now);
  depend_on_nodes_of_jobs();
  for (const auto& [id, query] : queries_) ask_for_status(peer, id);
}

/// An agent runs what an earlier head has closed: it was killed before that was heard there.
void Head::close_those_over(Instant now) {
  std::vector<JobId> over;
  for (const auto& [id, entry] : jobs_.jobs())
    if (state_.is_over(id)) over.push_back(id);
  for (const JobId id : over) act(jobs_.close(id), now);
}

/// Once all have said what runs: one that is kept apart from the head may run a job on.
void Head::compare_with_state() {
  if (compared_ || !ready()) return;
  compared_ = true;
  std::set<JobId> running;
  for (const auto& [id, entry] : jobs_.jobs()) {
    running.insert(id);
    state_.on_running(id, entry, options_.wall());
  }
  state_.lose_all_but(running, options_.wall());
}

/// Not while the cluster starts: nothing happens then that would be missed.
void Head::write_state(Instant now) {
  if (writes_from_ && !ready() && now < *writes_from_) return;
  writes_from_.reset();
  state_.write(now);
}

/// Before its hello.
void Head::on_runs(const transport::Peer& peer, const wire::OpenJob::Reader& open, Instant now) {
  const NodeId node = node_of_peer(peer);
  auto entry = read_job(open, now);
  if (node.value < 0 || !entry) return;
  jobs_.on_runs(node, JobId{open.getJob()}, *std::move(entry));
}

/// Jobs that have workers there fail, and say so, but for those that can go on: they wait for what the other node says.
void Head::on_gone(const transport::Event& gone, Instant now) {
  const transport::Peer& peer = gone.peer;
  const NodeId node = node_of_peer(peer);
  const bool was_here = nodes_.erase(node) > 0;
  // Who is only cut off asks again when it is back; whoever was at a process that ended is gone with it.
  std::erase_if(waiting_, [&](const Waiting& waiting) { return waiting.asker.agent == peer; });
  act(names_.on_node_gone(node), now);
  if (!was_here) return;
  act(jobs_.on_gone(node, gone.cause, gone.is_silent), now);
  ++epoch_;
  broadcast_nodes();
}

void Head::act(const JobDirectory::Actions& actions, Instant now) {
  for (const auto& action : actions) std::visit([&](const auto& a) { carry_out(a, now); }, action);
  if (!actions.empty()) depend_on_nodes_of_jobs();
}

void Head::carry_out(const JobDirectory::Open& open, Instant now) {
  const JobEntry* const entry = jobs_.find(open.job);
  const auto to = nodes_.find(open.node);
  if (!entry || to == nodes_.end()) return;
  wire::Message message;
  write_job(message.root().initOpenJob(), open.job, *entry, now);
  send(to->second.peer, message);
}

void Head::carry_out(const JobDirectory::Close& close, Instant) {
  state_.on_closed(close.job, nullptr, options_.wall());
  wire::Message message;
  message.root().initCloseJob().setJob(close.job.value);
  to_all(message);
}

void Head::carry_out(const JobDirectory::Lost& lost, Instant) {
  const JobEntry* const entry = jobs_.find(lost.job);
  const auto driver = entry ? nodes_.find(entry->driver.node) : nodes_.end();
  if (driver == nodes_.end()) return;
  wire::Message message;
  auto body = message.root().initJobEvent();
  body.setJob(lost.job.value);
  body.initFailed().setText("node " + to_string(lost.node) + " was lost, with its workers" +
                            (lost.cause.empty() ? "" : " (" + lost.cause + ")") +
                            ": go on from the last checkpoint with --resume");
  body.setTo(entry->driver.peer);
  send(driver->second.peer, message);
}

void Head::carry_out(const JobDirectory::GoOn& go_on, Instant) {
  state_.on_node_lost(go_on.job, go_on.lost, go_on.cause, options_.wall());
  wire::Message message;
  auto body = message.root().initNodeGone();
  body.setJob(go_on.job.value);
  body.setNode(go_on.lost.value);
  body.setCause(go_on.cause);
  send(agent_peer(go_on.node), message);
}

void Head::carry_out(const JobDirectory::CloseOn& close, Instant) {
  wire::Message message;
  message.root().initCloseJob().setJob(close.job.value);
  send(agent_peer(close.node), message);
}

void Head::carry_out(const JobDirectory::Driven& driven, Instant) {
  const JobEntry* const entry = jobs_.find(driven.job);
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
  send(agent_peer(driven.node), message);
}

/// A node that is frozen is to be noticed while a job has workers there.
void Head::depend_on_nodes_of_jobs() {
  std::set<NodeId> needed;
  for (const auto& [id, job] : jobs_.jobs())
    std::copy_if(job.node_of.begin(), job.node_of.end(), std::inserter(needed, needed.end()),
                 [&without = job.without](NodeId node) { return !without.contains(node); });
  needed.merge(names_.nodes());
  for (const auto& [node, entry] : nodes_) transport_->depends_on(entry.peer, needed.contains(node));
}

void Head::broadcast_nodes() {
  for (const auto& [id, to] : nodes_) {
    wire::Message message;
    auto body = message.root().initNodes();
    body.setEpoch(epoch_);
    auto list = body.initNodes(static_cast<unsigned>(nodes_.size()));
    unsigned i = 0;
    for (const auto& [node, entry] : nodes_) {
      list[i].setNode(node.value);
      list[i].setName(entry.peer);
      list[i].setAddress(entry.address);
      list[i].setCpus(entry.cpus);
      list[i].setMemory(entry.memory);
      list[i].setPid(entry.pid);
      ++i;
    }
    send(to.peer, message);
  }
}

void Head::on_linked(NodeId node, std::int64_t epoch, Instant now) {
  const auto it = nodes_.find(node);
  if (it == nodes_.end()) return;
  it->second.linked = epoch;
  if (!ready()) return;
  for (const auto& waiting : std::exchange(waiting_, {})) answer(waiting, now);
}

bool Head::ready() const {
  std::int64_t newest = 0;  // Of the nodes of a lower number.
  for (const auto& [id, node] : nodes_) {
    if (node.linked < newest) return false;
    newest = std::max(newest, node.since);
  }
  return static_cast<std::int32_t>(nodes_.size()) == options_.nodes;
}

void Head::on_request(const Asker& asker, const std::string& verb, const json& body, Instant now) {
  const NodeId agent = node_of_peer(asker.agent);
  if (verb == kLinkedVerb) return on_linked(agent, body.value("epoch", std::int64_t{0}), now);
  if (verb == kGoneVerb) {
    const auto gone = body.value("peer", "");
    std::erase_if(waiting_,
                  [&](const Waiting& one) { return one.asker.agent == asker.agent && one.asker.from == gone; });
    act(jobs_.on_driver_gone(agent, gone), now);
    return reply(asker, json::object());
  }
  if (verb == kCutOffVerb) {
    for (const json& job : body.value("jobs", json::array()))
      act(jobs_.on_cut_off(agent, NodeId{body.value("node", -1)}, JobId{job.is_number() ? job.get<std::uint64_t>() : 0},
                           body.value("cause", ""), now),
          now);
    return reply(asker, json::object());
  }
  if (verb == "submit" || verb == kClaimVerb || verb == actors::kFindVerb)
    return answer_when_ready(asker, verb, body, now);
  if (verb == kUnclaimVerb)
    return names_.on_unclaim(body.value("name", ""), ActorId{body.value("actor", std::uint64_t{0})});
  if (verb == kNamesVerb) return on_names(asker.agent, body);
  if (verb == "stop") return reply(asker, stop_job(body));
  if (verb == kDriveVerb) {
    waiting_.push_back({asker, verb, body, now + kNodesPatience});
    return answer_drivers(now);
  }
  if (verb == "close") {
    state_.on_closed(JobId{body.value("job", std::uint64_t{0})}, body.value("outcome", json::object()),
                     options_.wall());
    act(jobs_.close(JobId{body.value("job", std::uint64_t{0})}), now);
    return reply(asker, json::object());  // Closed already is closed, too: it may be asked twice.
  }
  if (verb == "status") return start_status(asker, body, now);
  if (verb == kDownVerb) return end_cluster(asker);
  reply(asker, fail(ErrorKind::invalid, "the head knows no request '" + verb + "'"));
}

void Head::answer_when_ready(const Asker& asker, const std::string& verb, const json& body, Instant now) {
  waiting_.push_back({asker, verb, body, now + kNodesPatience});
  if (!ready() && waiting_.size() <= kWaitingMax) return;
  const Waiting waiting = std::move(waiting_.back());
  waiting_.pop_back();
  answer(waiting, now);
}

void Head::answer(const Waiting& waiting, Instant now) {
  if (waiting.verb == kDriveVerb) return reply(waiting.asker, move_driver(waiting.asker, waiting.body, now));
  if (waiting.verb != "submit") return answer_of_name(waiting, now);
  Result<json> said;
  const auto made = contained([&] { said = submit(waiting.asker, waiting.body, now); });
  reply(waiting.asker, made ? said : tl::unexpected(made.error()));
}

// Names of actors
// -----------------------------------------------------------------------------------------------------------------

void Head::answer_of_name(const Waiting& waiting, Instant now) {
  const std::uint64_t request = next_query_++;
  NameDirectory::Actions actions;
  const auto read = contained([&] {
    actions = waiting.verb == kClaimVerb
                  ? names_.on_claim(request, claim_from(waiting.body))
                  : names_.on_find(request, waiting.body.value("name", ""), waiting.body.value("type", ""));
  });
  if (!read) return reply(waiting.asker, tl::unexpected(read.error()));
  of_names_.emplace(request, waiting);
  act(actions, now);
}

void Head::on_names(const transport::Peer& peer, const json& body) {
  for (const ActorId lost : names_.on_told(node_of_peer(peer), names_from(body))) {
    wire::Message message;
    auto word = message.root().initRequest();
    word.setVerb(kLostNameVerb);
    word.setJson(json_text(json{{"actor", lost.value}}));
    send(peer, message);
  }
}

void Head::act(const NameDirectory::Actions& actions, Instant now) {
  for (const auto& action : actions) std::visit([&](const auto& a) { carry_out(a, now); }, action);
}

void Head::carry_out(const NameDirectory::Found& found, Instant) {
  const auto asked = of_names_.extract(found.request);
  if (!asked) return;
  const auto& body = asked.mapped().body;
  reply(asked.mapped().asker, json{{"actor", found.actor.value},
                                   {"asked", body.value("actor", std::uint64_t{0})},
                                   {"name", body.value("name", "")}});
  depend_on_nodes_of_jobs();
}

void Head::carry_out(const NameDirectory::Refused& refused, Instant) {
  if (const auto asked = of_names_.extract(refused.request)) reply(asked.mapped().asker, tl::unexpected(refused.error));
}

void Head::carry_out(const NameDirectory::Confirm& confirm, Instant now) {
  if (!nodes_.contains(confirm.node)) return act(names_.on_node_gone(confirm.node), now);
  wire::Message message;
  auto request = message.root().initRequest();
  request.setId(confirm.request);
  request.setVerb(kHasNameVerb);
  request.setJson(json_text(json{{"actor", confirm.actor.value}}));
  send(agent_peer(confirm.node), message);
}

void Head::carry_out(const NameDirectory::Again& again, Instant now) {
  if (const auto asked = of_names_.extract(again.request))
    answer_when_ready(asked.mapped().asker, asked.mapped().verb, asked.mapped().body, now);
}

Result<json> Head::submit(const Asker& asker, const json& body, Instant now) {
  auto options = job::read_options(body);
  if (!options) return tl::unexpected(options.error());
  if (!body.contains("workers"))
    return fail(ErrorKind::invalid, "a job needs at least one worker: submit says nothing of it");
  const auto strategy = job_strategy(*options, options->workers);
  if (!strategy) return tl::unexpected(strategy.error());
  if (!ready())
    return fail(ErrorKind::infeasible, "the cluster has " + std::to_string(nodes_.size()) + " of its " +
                                           std::to_string(options_.nodes) +
                                           " nodes, or they do not all reach each other yet: wait for them");
  const NodeId driver_node = node_of_peer(asker.agent);
  const JobDriver driver{driver_node, asker.from, jobs_.incarnation(driver_node).value_or(0), asker.id};
  for (const auto& [id, entry] : jobs_.jobs())
    if (entry.driver == driver) return answer_of(id);

  std::vector<NodeId> nodes;
  for (const auto& [node, entry] : nodes_) nodes.push_back(node);
  auto node_of = options->node_of.empty() ? place(options->workers, nodes)
                                          : place_as_told(options->node_of, options->workers, nodes);
  if (!node_of) return tl::unexpected(node_of.error());
  JobEntry entry{body, *std::move(options), *std::move(node_of), {}, now, driver};
  JobDirectory::Actions actions;
  const JobId id = jobs_.add(std::move(entry), actions);
  state_.on_running(id, *jobs_.find(id), options_.wall());
  act(actions, now);
  return answer_of(id);
}

Result<json> Head::answer_of(JobId id) const {
  const JobEntry& entry = *jobs_.find(id);
  const auto strategy = job_strategy(entry.options, static_cast<std::int32_t>(entry.node_of.size()));
  if (!strategy) return tl::unexpected(strategy.error());
  json answer{{"job", id.value},
              {"strategy", strategy->name},
              {"batches", strategy->batches},
              {"cluster_nodes", nodes_.size()}};
  for (const NodeId node : entry.node_of) answer["nodes"].push_back(node.value);
  return answer;
}

/// Whether this node's agent can reach those of the job.
bool Head::is_linked(NodeId node, const JobEntry& job) const {
  return std::all_of(job.node_of.begin(), job.node_of.end(), [&](NodeId member) {
    const auto first = nodes_.find(std::min(node, member)), second = nodes_.find(std::max(node, member));
    if (job.without.contains(member) || node == member) return true;
    return first != nodes_.end() && second != nodes_.end() && second->second.linked >= first->second.since;
  });
}

/// Those whose jobs are known: a head that is started anew hears of them from the agents.
void Head::answer_drivers(Instant now) {
  answer_those(now, [this](const Waiting& waiting) {
    return waiting.verb == kDriveVerb && jobs_.find(JobId{waiting.body.value("job", std::uint64_t{0})}) != nullptr;
  });
}

/// Whose time is up stays for tick().
void Head::answer_those(Instant now, const std::function<bool(const Waiting&)>& is_due) {
  for (const auto& waiting : std::exchange(waiting_, {})) {
    if (is_due(waiting)) {
      answer(waiting, now);
    } else {
      waiting_.push_back(waiting);
    }
  }
}

Result<json> Head::move_driver(const Asker& asker, const json& body, Instant now) {
  std::map<NodeId, std::uint64_t> heard;
  for (const json& each : body.value("heard", json::array()))
    if (each.is_array() && each.size() == 2 && each[0].is_number_integer() && each[1].is_number_unsigned())
      heard[NodeId{each[0].get<std::int32_t>()}] = each[1].get<std::uint64_t>();
  const auto moved =
      jobs_.move_driver(JobId{body.value("job", std::uint64_t{0})}, asker.from, node_of_peer(asker.agent), heard, now);
  if (!moved) return tl::unexpected(moved.error());
  act(*moved, now);
  const JobEntry* const job = jobs_.find(JobId{body.value("job", std::uint64_t{0})});
  return json{{"linked", !job || is_linked(node_of_peer(asker.agent), *job)}};
}

Result<json> Head::stop_job(const json& body) {
  const JobId id{body.value("job", std::uint64_t{0})};
  if (!jobs_.find(id)) return fail(ErrorKind::not_found, "no job " + to_string(id) + " runs here");
  wire::Message message;
  auto stop = message.root().initStopRounds();
  stop.setJob(id.value);
  stop.setReason(body.value("reason", std::string("stopped")));
  to_all(message);
  return json::object();
}

void Head::end_cluster(const Asker& asker) {
  down_ = true;
  reply(asker, json::object());
  wire::Message message;
  message.root().initRequest().setVerb(kDownVerb);
  to_all(message);
}

void Head::start_status(const Asker& asker, const json& body, Instant now) {
  const std::uint64_t id = next_query_++;
  const bool missing = static_cast<std::int32_t>(nodes_.size()) < options_.nodes;
  const auto patience = body.value("patient", false) ? kListPatience : missing ? kMissingPatience : kStatusPatience;
  queries_[id] = {asker, body, {}, now + patience};
  for (const auto& [node, entry] : nodes_) ask_for_status(entry.peer, id);
}

void Head::ask_for_status(const transport::Peer& peer, std::uint64_t query) {
  wire::Message message;
  auto request = message.root().initRequest();
  request.setId(query);
  request.setVerb("node_status");
  request.setJson(json_text(queries_.at(query).body));
  send(peer, message);
}

void Head::finish_status(std::uint64_t id, Instant now) {
  const auto node = queries_.extract(id);
  if (node.empty()) return;
  const auto& query = node.mapped();
  json status;
  const auto made = contained([&] { status = status_of(query, now); });
  reply(query.asker, made ? Result<json>(std::move(status)) : tl::unexpected(made.error()));
}

json Head::status_of(const StatusQuery& query, Instant now) const {
  json status{{"name", options_.cluster},
              {"nodes_expected", options_.nodes},
              {"nodes", json::array()},
              {"jobs", json::array()}};
  for (const auto& [list, its_name] : kLists)
    if (query.body.contains(list)) status[list] = json::array();
  std::map<std::uint64_t, json> jobs;
  for (const auto& [node_id, entry] : nodes_) {
    json row{{"node", node_id.value},           {"pid", entry.pid},         {"cpus", entry.cpus},
             {"memory", entry.memory},          {"address", entry.address}, {"answers", false},
             {"starts", state_.starts(node_id)}};
    if (const auto it = query.answers.find(node_id); it != query.answers.end() && it->second.is_object()) {
      row["answers"] = true;
      row["workers"] = it->second.value("workers", 0);
      row["rss"] = it->second.value("rss", std::int64_t{0});
      for (const char* name : {"longest_turn_s", "longest_turn_cpu_s", "cpus_free", "memory_free", "memory_used"})
        row[name] = it->second.value(name, 0.0);
      row["actors"] = it->second.value("actors_alive", 0);
      for (const char* name : {"held", "machine", "clock_ns", "spans_left_out"})
        if (it->second.contains(name)) row[name] = it->second[name];
      for (const auto& [list, its_name] : kLists)
        for (auto& one : it->second.value(its_name, json::array())) status[list].push_back(std::move(one));
      for (const auto& part : it->second.value("jobs", json::array())) {
        auto& job = jobs[part.value("job", std::uint64_t{0})];
        if (job.is_null()) {
          job = part;
        } else {
          for (const auto& worker : part.value("workers", json::array())) job["workers"].push_back(worker);
          for (const char* name : {"waiting", "evaluation"})
            if (part.contains(name) && !job.contains(name)) job[name] = part[name];
          if (part.contains("logged"))
            job["logged"] = LoggedValues::newest_of(job.value("logged", json()), part["logged"]);
        }
      }
    }
    status["nodes"].push_back(row);
  }
  for (auto& [id_of_job, job] : jobs) {
    if (const JobEntry* const known = jobs_.find(JobId{id_of_job})) {
      job["age_s"] = seconds(now - known->since);
      job["script"] = known->options.program;
      job["run_directory"] = known->options.run_directory;
    }
    status["jobs"].push_back(std::move(job));
  }
  if (query.body.contains("jobs_over")) status["jobs_over"] = state_.jobs_over();
  if (!state_.problem().empty()) status["problem"] = state_.problem();
  if (status.contains("workers")) name_awaited(status["workers"]);
  return status;
}

/// An agent does not know what actors of other nodes are called.
void Head::name_awaited(json& workers) const {
  std::map<std::string, std::string> name_of;
  for (const auto& [name, claim] : names_.names()) name_of.emplace(to_string(claim.actor), name);
  for (json& worker : workers) {
    if (!worker.is_object() || !worker.value("awaited", json()).is_string()) continue;
    if (const auto named = name_of.find(worker["awaited"]); named != name_of.end())
      worker["waits_for"] = "actor '" + readable(named->second) + "'";
  }
}

void Head::tick(Instant now) {
  if (const auto due = transport_->next_deadline(); due && *due <= now) poll(now);
  std::vector<std::uint64_t> late;
  for (const auto& [id, query] : queries_)
    if (now >= query.deadline) late.push_back(id);
  for (const std::uint64_t id : late) finish_status(id, now);
  answer_those(now, [now](const Waiting& waiting) { return now >= waiting.until; });
  act(jobs_.tick(now), now);
  compare_with_state();
  write_state(now);
}

std::optional<Instant> Head::next_deadline() const {
  auto deadline = earlier(earlier(transport_->next_deadline(), jobs_.next_deadline()), state_.next_deadline());
  deadline = earlier(deadline, writes_from_);
  for (const auto& [id, query] : queries_) deadline = earlier(deadline, query.deadline);
  for (const auto& waiting : waiting_) deadline = earlier(deadline, waiting.until);
  return deadline;
}

void Head::reply(const Asker& asker, const Result<json>& answer) {
  wire::Message message;
  auto body = message.root().initReply();
  body.setId(asker.id);
  body.setTo(asker.from);
  body.setOk(answer.has_value());
  if (answer) {
    body.setJson(json_text(*answer));
  } else {
    auto error = body.initError();
    error.setKind(std::string(to_string(answer.error().kind)));
    error.setText(answer.error().text);
  }
  send(asker.agent, message);
}

void Head::to_all(wire::Message& message) {
  for (const auto& [id, node] : nodes_) send(node.peer, message);
}

void Head::send(const transport::Peer& peer, wire::Message& message) {
  std::vector<transport::Frame> frames;
  frames.push_back(message.to_frame());
  // A peer that cannot be reached is gone or going: it registers anew when it comes back.
  (void)transport_->send(peer, std::move(frames));
}

}  // namespace paceline::cluster
