#include "algorithms/cluster/head.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "algorithms/cluster/logged_values.h"
#include "algorithms/cluster/training_job.h"
#include "algorithms/job/options.h"
#include "runtime/base/contained.h"
#include "runtime/base/json.h"

namespace paceline::cluster {
namespace {

using nlohmann::json;

constexpr Duration kStatusPatience = std::chrono::milliseconds(80);
constexpr std::string_view kAgentPrefix = "agent/";

/// Ranks in contiguous blocks, as even as possible: neighbours in rank are neighbours in memory.
Result<std::vector<NodeId>> place(std::int32_t workers, const std::vector<NodeId>& nodes) {
  std::vector<NodeId> node_of;
  const auto count = static_cast<std::int64_t>(nodes.size());
  for (std::int64_t rank = 0; rank < workers; ++rank)
    node_of.push_back(nodes[static_cast<std::size_t>(rank * count / workers)]);
  return node_of;
}

/// The same as in the run that is replayed: which sums are made where is a part of the result.
Result<std::vector<NodeId>> place_as_told(const json& told, std::int32_t workers, const std::vector<NodeId>& nodes) {
  std::vector<NodeId> node_of;
  for (const json& node : told) {
    node_of.emplace_back(node.is_number_integer() ? node.get<std::int32_t>() : -1);
    if (std::find(nodes.begin(), nodes.end(), node_of.back()) == nodes.end())
      return fail(ErrorKind::infeasible, "the run had workers on node " + json_text(node) +
                                             ", but the cluster has only " + std::to_string(nodes.size()) +
                                             " nodes: stop it with `paceline down`, then the replay starts its own");
  }
  if (node_of.size() != static_cast<std::size_t>(workers))
    return fail(ErrorKind::invalid, "a node is named for " + std::to_string(node_of.size()) +
                                        " workers, but there are " + std::to_string(workers));
  return node_of;
}

}  // namespace

std::string agent_peer(NodeId node) { return std::string(kAgentPrefix) + to_string(node); }

NodeId node_of_peer(const std::string& peer) {
  std::int32_t value = -1;
  if (!peer.starts_with(kAgentPrefix)) return NodeId{-1};
  const char* end = peer.data() + peer.size();
  const auto [stop, error] = std::from_chars(peer.data() + kAgentPrefix.size(), end, value);
  return NodeId{error == std::errc() && stop == end ? value : -1};
}

Head::Head(Options options, std::unique_ptr<transport::Transport> transport)
    : options_(std::move(options)), transport_(std::move(transport)) {}

void Head::poll(Instant now) {
  while (auto event = transport_->poll(Duration::zero())) {
    if (event->kind == transport::Event::Kind::disconnected) on_gone(event->peer);
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
    case wire::Envelope::HELLO: return on_hello(peer, envelope.getHello());
    case wire::Envelope::REQUEST: {
      const auto request = envelope.getRequest();
      const Asker asker = asker_of(peer, request);
      const auto body = parse_json(wire::text(request.getJson()));
      return on_request(asker, wire::text(request.getVerb()), body.is_object() ? body : json::object(), now);
    }
    case wire::Envelope::REPLY: {  // An agent's answer to node_status.
      const auto answer = envelope.getReply();
      const auto query = queries_.find(answer.getId());
      if (query == queries_.end()) return;
      query->second.answers[node_of_peer(peer)] = parse_json(wire::text(answer.getJson()));
      if (query->second.answers.size() == nodes_.size()) finish_status(answer.getId(), now);
      return;
    }
    default: return;
  }
}

void Head::on_hello(const transport::Peer& peer, const wire::Hello::Reader& hello) {
  const NodeId node = node_of_peer(peer);
  if (node.value < 0) return;
  nodes_[node] = {peer, wire::text(hello.getAddress()), hello.getCpus(), hello.getPid(), node.value == 0};
  (void)transport_->send(peer, {wire::welcome(peer, node)});
  ++epoch_;
  broadcast_nodes();
}

/// Nobody can take over what its workers hold: jobs that have some there fail, and say so.
void Head::on_gone(const transport::Peer& peer) {
  const NodeId node = node_of_peer(peer);
  if (nodes_.erase(node) == 0) return;
  for (const auto& [id, job] : jobs_) {
    if (std::find(job.node_of.begin(), job.node_of.end(), node) == job.node_of.end()) continue;
    const auto driver = nodes_.find(NodeId{job.settings.value("driver_node", 0)});
    if (driver == nodes_.end()) continue;
    wire::Message message;
    auto body = message.root().initJobEvent();
    body.setJob(id.value);
    body.setJson(
        json_text(json{{"event", "failed"},
                       {"text", "node " + to_string(node) +
                                    " was lost, with its workers: go on from the last checkpoint with --resume"}}));
    body.setTo(job.settings.value("driver_peer", ""));
    send(driver->second.peer, message);
  }
  ++epoch_;
  broadcast_nodes();
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
      list[i].setPid(entry.pid);
      ++i;
    }
    send(to.peer, message);
  }
}

bool Head::ready() const {
  return static_cast<std::int32_t>(nodes_.size()) == options_.nodes &&
         std::all_of(nodes_.begin(), nodes_.end(), [](const auto& node) { return node.second.linked; });
}

void Head::on_request(const Asker& asker, const std::string& verb, const json& body, Instant now) {
  if (verb == kLinkedVerb) {
    if (const auto it = nodes_.find(node_of_peer(asker.agent)); it != nodes_.end()) it->second.linked = true;
    return;
  }
  if (verb == "submit") return reply(asker, submit(asker, body, now));
  if (verb == "stop") return reply(asker, stop_job(body));
  if (verb == "close") return reply(asker, close_job(body));
  if (verb == "status") return start_status(asker, now);
  if (verb == "down") {
    down_ = true;
    return reply(asker, json::object());
  }
  reply(asker, fail(ErrorKind::invalid, "the head knows no request '" + verb + "'"));
}

Result<json> Head::submit(const Asker& asker, const json& body, Instant now) {
  PACELINE_TRY(job::check_options(body));
  const auto workers = body.value("workers", std::int32_t{0});
  if (workers < 1) return fail(ErrorKind::invalid, "a job needs at least one worker: submit says nothing of it");
  auto strategy = job_strategy(body, workers);
  if (!strategy) return tl::unexpected(strategy.error());
  if (!ready())
    return fail(ErrorKind::infeasible, "the cluster has " + std::to_string(nodes_.size()) + " of its " +
                                           std::to_string(options_.nodes) +
                                           " nodes, or they do not all reach each other yet: wait for them");

  std::vector<NodeId> nodes;
  for (const auto& [node, entry] : nodes_) nodes.push_back(node);
  auto node_of = body.contains("node_of") ? place_as_told(body["node_of"], workers, nodes) : place(workers, nodes);
  if (!node_of) return tl::unexpected(node_of.error());
  Job job{body, *std::move(node_of), now};
  const JobId id{next_job_++};
  job.settings["driver_node"] = node_of_peer(asker.agent).value;
  job.settings["driver_peer"] = asker.from;
  const std::set<NodeId> members(job.node_of.begin(), job.node_of.end());
  for (const NodeId node : members) {
    wire::Message message;
    auto open = message.root().initOpenJob();
    open.setJob(id.value);
    open.setJson(json_text(job.settings));
    auto list = open.initMembers(static_cast<unsigned>(workers));
    for (unsigned rank = 0; rank < static_cast<unsigned>(workers); ++rank) {
      list[rank].setRank(static_cast<std::int32_t>(rank));
      list[rank].setNode(job.node_of[rank].value);
    }
    send(nodes_.at(node).peer, message);
  }
  json answer{
      {"job", id.value}, {"strategy", strategy->name}, {"batches", strategy->batches}, {"cluster_nodes", nodes.size()}};
  for (const NodeId node : job.node_of) answer["nodes"].push_back(node.value);
  jobs_.emplace(id, std::move(job));
  return answer;
}

Result<json> Head::stop_job(const json& body) {
  const JobId id{body.value("job", std::uint64_t{0})};
  const auto job = jobs_.find(id);
  if (job == jobs_.end()) return fail(ErrorKind::not_found, "no job " + to_string(id) + " runs here");
  for (const auto& [node, entry] : nodes_) {
    wire::Message message;
    auto stop = message.root().initStopRounds();
    stop.setJob(id.value);
    stop.setReason(body.value("reason", std::string("stopped")));
    send(entry.peer, message);
  }
  return json::object();
}

Result<json> Head::close_job(const json& body) {
  const JobId id{body.value("job", std::uint64_t{0})};
  if (jobs_.erase(id) == 0) return fail(ErrorKind::not_found, "no job " + to_string(id) + " runs here");
  for (const auto& [node, entry] : nodes_) {
    wire::Message message;
    auto close = message.root().initCloseJob();
    close.setJob(id.value);
    send(entry.peer, message);
  }
  return json::object();
}

void Head::start_status(const Asker& asker, Instant now) {
  const std::uint64_t id = next_query_++;
  queries_[id] = {asker, {}, now + kStatusPatience};
  for (const auto& [node, entry] : nodes_) {
    wire::Message message;
    auto request = message.root().initRequest();
    request.setId(id);
    request.setVerb("node_status");
    request.setJson("{}");
    send(entry.peer, message);
  }
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
  json status{{"name", options_.cluster}, {"nodes", json::array()}, {"jobs", json::array()}};
  std::map<std::uint64_t, json> jobs;
  for (const auto& [node_id, entry] : nodes_) {
    json row{{"node", node_id.value},
             {"pid", entry.pid},
             {"cpus", entry.cpus},
             {"address", entry.address},
             {"answers", false}};
    if (const auto it = query.answers.find(node_id); it != query.answers.end() && it->second.is_object()) {
      row["answers"] = true;
      row["workers"] = it->second.value("workers", 0);
      row["rss"] = it->second.value("rss", std::int64_t{0});
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
    if (const auto known = jobs_.find(JobId{id_of_job}); known != jobs_.end()) {
      job["age_s"] = seconds(now - known->second.since);
      job["script"] = known->second.settings.value("program", "");
      job["run_directory"] = known->second.settings.value("run_directory", "");
    }
    status["jobs"].push_back(std::move(job));
  }
  return status;
}

void Head::tick(Instant now) {
  std::vector<std::uint64_t> late;
  for (const auto& [id, query] : queries_)
    if (now >= query.deadline) late.push_back(id);
  for (const std::uint64_t id : late) finish_status(id, now);
}

std::optional<Instant> Head::next_deadline() const {
  std::optional<Instant> deadline;
  for (const auto& [id, query] : queries_)
    if (!deadline || query.deadline < *deadline) deadline = query.deadline;
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

void Head::send(const transport::Peer& peer, wire::Message& message) {
  std::vector<transport::Frame> frames;
  frames.push_back(message.to_frame());
  // A peer that cannot be reached is gone or going: it registers anew when it comes back.
  (void)transport_->send(peer, std::move(frames));
}

}  // namespace paceline::cluster
