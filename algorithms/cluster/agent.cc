#include "algorithms/cluster/agent.h"

#include <utility>

#include "actors/protocol_wire.h"
#include "algorithms/cluster/name_requests.h"
#include "algorithms/cluster/requests.h"
#include "algorithms/cluster/training/peer_names.h"
#include "algorithms/cluster/worker_processes.h"
#include "runtime/base/contained.h"
#include "runtime/base/json.h"

namespace paceline::cluster {

using nlohmann::json;

Agent::Agent(Options options, EventLoop& loop, std::unique_ptr<transport::Transport> local,
             std::unique_ptr<transport::Transport> peers, std::unique_ptr<collective::Averager> averager,
             observe::Log log)
    : options_(std::move(options)),
      loop_(loop),
      log_(std::move(log)),
      links_({options_.node, options_.head_address}, std::move(peers), *options_.clock, options_.messages_a_turn, log_,
             listen_to_links()),
      local_(std::move(local), *options_.clock, options_.messages_a_turn, log_, listen_to_local()),
      head_({options_.node, options_.peer_address, options_.cpus, options_.memory, options_.incarnation}, links_,
            local_, log_, [this](std::uint64_t request, const auto& answer) { actors_.on_answer(request, answer); }),
      output_(options_.node, loop_, log_,
              {.to_driver = [this](const std::string& driver,
                                   actors::Frames frames) { return local_.send(driver, std::move(frames)); },
               .to_node = [this](NodeId node,
                                 actors::Frames frames) { links_.send_frames(agent_peer(node), std::move(frames)); },
               .others = [this] { return links_.others().reachable(); }}),
      workers_([this](Workers::Listener listener) { return make_workers(std::move(listener)); },
               [this](WorkerOutput::Source source) { output_.watch(std::move(source)); },
               [this](WorkerId worker) { output_.on_worker_ended(worker); }, loop_, around_workers()),
      actors_(
          {options_.node, options_.cpus, options_.memory, options_.descriptors, options_.directory, options_.starts},
          {head_, links_, local_, workers_, output_, log_,
           [this](process::Fd state) {
             beside(
                 [memory = std::make_shared<process::Fd>(std::move(state))]() -> Result<void> {
                   memory->reset();
                   return {};
                 },
                 [](const Result<void>&) {});
           },
           [this] { return jobs_.open_ones(); }, [this] { depend_on_nodes_in_use(); }}),
      memory_(options_.node, options_.memory_limit,
              {workers_.processes(),
               [this](WorkerId worker) {
                 const auto* const lent = actors_.router().lent(worker);
                 return lent ? lent->shape.memory : 0;
               },
               [this](const MemoryWatch::Victim& victim) { actors_.end_for_memory(victim.worker, victim.why); }}),
      jobs_(around_jobs(), std::move(averager)),
      status_(
          {options_.node, [this] { return nodes(); }, *options_.clock, loop_, actors_.router(), workers_,
           memory_.watch(), jobs_, [this](auto work, auto follows) { beside(std::move(work), std::move(follows)); }},
          head_) {}

Agent::~Agent() = default;

std::unique_ptr<Workers> Agent::make_workers(Workers::Listener listener) {
  if (options_.workers) return options_.workers(std::move(listener));
  return std::make_unique<WorkerProcesses>(
      WorkerProcesses::Options{options_.node, options_.directory, options_.local_address}, loop_, log_,
      std::move(listener));
}

AgentLinks::Listener Agent::listen_to_links() {
  return {.turn = [this] { begin_turn(); },
          .message = [this](const auto& peer, const auto& message,
                            auto& frames) { handle(&Agent::on_peer, peer, message, frames); },
          .head_gone = [this] { on_head_gone(); },
          .gone = [this](NodeId node, const std::string& how) { on_node_gone(node, how); },
          .unsent = [this](NodeId node, const Error& error) { on_unsent(node, error); },
          .reachable = [this](NodeId node, const auto& has) { actors_.act(actors_.router().on_node(node, has)); }};
}

LocalPeers::Listener Agent::listen_to_local() {
  return {.turn = [this] { begin_turn(); },
          .message = [this](const auto& peer, const auto& message,
                            auto& frames) { handle(&Agent::on_local, peer, message, frames); },
          .gone = [this](const transport::Peer& peer) { on_local_gone(peer); },
          .end_worker = [this](WorkerId worker, const std::string& why) { workers_.processes().end(worker, why); }};
}

NodeWorkers::Around Agent::around_workers() {
  return {.clock = *options_.clock,
          .directory = options_.directory,
          .ended = [this](WorkerId worker, const auto& end) { on_worker_ended(worker, end); },
          .session_said = [this](WorkerId worker, channel::Frame frame) { on_session_said(worker, std::move(frame)); },
          .captured = [this](WorkerId worker, std::string_view packet,
                             process::Fd state) { jobs_.on_captured(worker, packet, std::move(state)); },
          .restartable = [this](WorkerId worker) { return actors_.router().restartable_of(worker); }};
}

NodeJobs::Around Agent::around_jobs() {
  return {options_.node,
          *options_.clock,
          log_,
          [this] { return outbox_of_job(); },
          [this](const JobDriver& driver, wire::Message& event) { return tell_driver(driver, event); },
          [this] { depend_on_nodes_in_use(); },
          [this](JobId job) {
            head_.tell(kLeftVerb, {{"job", job.value}});
          }};
}

JobOutbox Agent::outbox_of_job() {
  JobOutbox outbox;
  outbox.to_node = [this](NodeId node, wire::Message& message, std::vector<transport::Piece> bulk) {
    links_.send(agent_peer(node), message, std::move(bulk));
  };
  outbox.answer = [this](WorkerId worker, std::uint64_t request, wire::Message& message,
                         const std::vector<process::BorrowedFd>& fds) {
    workers_.processes().answer(worker, request, message.to_packet(), fds);
  };
  outbox.refuse = [this](WorkerId worker, std::uint64_t request, const Error& error) {
    workers_.processes().answer(worker, request, tl::unexpected(error), {});
  };
  outbox.ask_for_life = [this](WorkerId worker) {
    wire::Message message;
    message.root().initAlive();
    local_.send("worker/" + to_string(worker), {message.to_frame()});
  };
  outbox.beside = [this](auto work, auto follows) { beside(std::move(work), std::move(follows)); };
  outbox.end_worker = [this](WorkerId worker, const std::string& why) {
    actors_.act(actors_.router().end_worker(worker, why));
  };
  outbox.replace_worker = [this](WorkerId worker, const std::string& why) {
    if (!actors_.router().will_restart(worker)) return false;
    actors_.act(actors_.router().replace_worker(worker, why));
    return true;
  };
  outbox.process_id = [this](WorkerId worker) { return workers_.processes().pid(worker); };
  outbox.process_state = [this](WorkerId worker) { return workers_.processes().state(worker); };
  return outbox;
}

Result<void> Agent::start() {
  loop_.on_error([this](const Error& error) { log_.error(error.text); });
  PACELINE_TRY(local_.watch(loop_));
  PACELINE_TRY(links_.watch(loop_));
  PACELINE_TRY(loop_.watch(jobs_.descriptor(), [this] { jobs_.on_averaged(); }));
  if (options_.has_threads) {
    auto background = Background::create();
    if (!background) return tl::unexpected(background.error());
    background_ = *std::move(background);
    PACELINE_TRY(loop_.watch(background_->descriptor(), [this] { background_->take_done(); }));
    PACELINE_TRY(memory_.start(loop_));
  }
  PACELINE_TRY(links_.connect_head());
  head_.introduce(jobs_, actors_.router(), options_.clock->now());
  local_.poll();
  links_.poll();
  return {};
}

bool Agent::drain() {
  if (nodes() == 1 || !jobs_.have_workers() || head_.gone()) return false;
  log_.info("told to end: this node's workers are to leave their jobs first");
  head_.tell("drain", {{"node", options_.node.value}, {"whatever_stays", true}});
  return true;
}

void Agent::tick(Instant now) {
  loop_.turn([&] { act_on_time(now); });
}

void Agent::act_on_time(Instant now) {
  jobs_.tick(now);
  head_.tick(now);
  if (const auto due = actors_.router().next_deadline(); due && *due <= now) actors_.act(actors_.router().tick(now));
  output_.tick(now);
  memory_.tick(now);
  local_.tick(now);
  links_.tick(now);
}

std::optional<Instant> Agent::next_deadline() const {
  std::optional<Instant> next = earlier(links_.next_deadline(), local_.next_deadline());
  next = earlier(next, head_.next_deadline());
  next = earlier(next, output_.next_deadline());
  next = earlier(next, actors_.router().next_deadline());
  next = earlier(next, memory_.next_deadline());
  return earlier(next, jobs_.next_deadline());
}

void Agent::handle(OnMessage handler, const transport::Peer& peer, const wire::Received& message,
                   std::vector<transport::Frame>& frames) {
  const auto handled =
      message.visit([&](const wire::Envelope::Reader& envelope) { return (this->*handler)(peer, envelope, frames); });
  if (!handled) refuse(peer, message, handled.error());
}

/// What was wrong with a message, for whoever waits for its answer, or for its job.
void Agent::refuse(const transport::Peer& peer, const wire::Received& message, const Error& error) {
  log_.warning(peer + ": " + error.text);
  (void)message.visit([&](const wire::Envelope::Reader& envelope) {
    auto refusal = refusal_of(peer, envelope, error);
    if (!refusal) return jobs_.on_unreadable(envelope, peer + ": " + error.text);
    const bool is_local = node_of_peer(peer).value < 0 && peer != kHead;
    is_local ? void(local_.send(peer, *std::move(refusal))) : links_.send_frames(peer, *std::move(refusal));
  });
}

void Agent::beside(std::function<Result<void>()> work, std::function<void(Result<void>)> follows) {
  if (background_) return background_->run(std::move(work), std::move(follows));
  follows(contained(work));
}

// Local peers
// -----------------------------------------------------------------------------------------------------------------

Result<void> Agent::on_local(const transport::Peer& peer, const wire::Envelope::Reader& envelope,
                             std::vector<transport::Frame>& frames) {
  if (is_session(peer)) {
    jobs_.on_message(peer, envelope, {});
    return {};
  }
  switch (envelope.which()) {
    case wire::Envelope::HELLO: on_hello(peer, envelope.getHello()); break;
    case wire::Envelope::REQUEST: return on_local_request(peer, envelope.getRequest());
    case wire::Envelope::CREATE_ACTOR:
    case wire::Envelope::CALL:
    case wire::Envelope::PUSH_TASK:
    case wire::Envelope::SIGNAL:
    case wire::Envelope::WANTS:
    case wire::Envelope::CALL_RESULT:
    case wire::Envelope::ACTOR_READY: return actors_.on_message(peer, options_.node, envelope, frames);
    case wire::Envelope::ALIVE: jobs_.on_alive(worker_of(peer)); break;
    case wire::Envelope::WAITS: {
      const auto waits = envelope.getWaits();
      actors_.act(actors_.router().on_waits(worker_of(peer), actors::awaited(waits)));
      break;
    }
    case wire::Envelope::OUTPUT_WANTED: output_.on_wanted(peer, actors::decode(envelope.getOutputWanted())); break;
    case wire::Envelope::EXECUTABLE:
      actors_.router().on_executable(peer, actors::decode(envelope.getExecutable()));
      break;
    default: return fail(ErrorKind::invalid, "sent a message that only others may send");
  }
  return {};
}

void Agent::on_hello(const transport::Peer& peer, const wire::Hello::Reader& hello) {
  local_.send(peer, {wire::welcome(peer, options_.node, actors_.process_ids().join(peer))});
  wire::Message nodes;
  const auto& known = links_.others().known();
  auto list = nodes.root().initNodes().initNodes(static_cast<unsigned>(known.size()));
  for (unsigned i = 0; i < known.size(); ++i) list[i].setNode(known[i].value);
  local_.send(peer, {nodes.to_frame()});
  if (wire::text(hello.getRole()) != "worker") return;
  workers_.processes().on_connected(worker_of(peer), hello.getPid());
  actors_.act(actors_.router().on_worker_ready(worker_of(peer)));
}

/// The head answers what is not for this agent; its reply comes back through here.
Result<void> Agent::on_local_request(const transport::Peer& peer, const wire::Request::Reader& request) {
  const std::string verb = wire::text(request.getVerb()), text = wire::text(request.getJson());
  if (verb == actors::kReleaseVerb) return actors_.on_release(peer, text, options_.node);
  const auto answer = actors_.answer(peer, verb, text);
  if (!answer) return head_.pass_on({peer, request.getId(), verb, text});
  return answer->map([&](const json& said) {
    wire::Message message;
    write_reply(message, request.getId(), {}, said);
    local_.send(peer, {message.to_frame()});
  });
}

void Agent::on_local_gone(const transport::Peer& peer) {
  if (is_session(peer)) return;
  actors_.act(actors_.router().on_owner_gone(peer));
  output_.on_peer_gone(peer);
  actors_.process_ids().leave(peer);
  // A driver's jobs end with it, those that the head is just being asked for, too.
  if (worker_of(peer).value == 0) head_.tell(kGoneVerb, {{"peer", peer}});
}

void Agent::on_session_said(WorkerId worker, channel::Frame frame) {
  const auto peer = "session/" + to_string(worker);
  const auto message = wire::Received::parse(std::move(frame));
  if (!message) return log_.warning(peer + ": " + message.error().text);
  std::vector<transport::Frame> no_frames;
  handle(&Agent::on_local, peer, *message, no_frames);
}

void Agent::on_worker_ended(WorkerId worker, const Workers::Listener::End& end) {
  memory_.on_worker_gone(worker);
  begin_turn();
  jobs_.on_worker_gone(worker, {end.how, end.failed, actors_.router().will_restart(worker)});
  actors_.act(actors_.router().on_worker_gone(worker, end.how, end.log));
}

// Other agents and the head
// -------------------------------------------------------------------------------------------------------

Result<void> Agent::on_peer(const transport::Peer& peer, const wire::Envelope::Reader& envelope,
                            std::vector<transport::Frame>& frames) {
  const NodeId from = node_of_peer(peer);
  switch (envelope.which()) {
    case wire::Envelope::HELLO: links_.on_hello(peer); break;
    case wire::Envelope::WELCOME: links_.on_welcome(from); break;
    case wire::Envelope::NODES:
      head_.on_back();
      links_.on_nodes(envelope.getNodes());
      break;
    case wire::Envelope::OPEN_JOB: return jobs_.open(envelope.getOpenJob());
    case wire::Envelope::CLOSE_JOB: {
      const JobId job{envelope.getCloseJob().getJob()};
      jobs_.close(job);
      actors_.act(actors_.router().on_job_closed(job));
      break;
    }
    case wire::Envelope::NODE_GONE: jobs_.on_node_gone(envelope.getNodeGone()); break;
    case wire::Envelope::JOB_DRIVEN: {
      const auto driver = read_driver(envelope.getJobDriven().getDriver());
      actors_.router().on_driver_moved(driver.peer, driver.node);
      output_.on_driver_moved(driver.peer, driver.node);
      jobs_.on_driven(envelope.getJobDriven());
      break;
    }
    case wire::Envelope::REPLY: head_.on_reply(envelope.getReply()); break;
    case wire::Envelope::JOB_EVENT: {
      wire::Message copy;
      copy.root().setJobEvent(envelope.getJobEvent());
      local_.send(wire::text(envelope.getJobEvent().getTo()), {copy.to_frame()});
      break;
    }
    case wire::Envelope::REQUEST: return on_peer_request(from, envelope.getRequest());
    case wire::Envelope::OUTPUT: output_.on_output(from, actors::decode(envelope.getOutput())); break;
    case wire::Envelope::OUTPUT_WANTED: output_.on_wanted(from, actors::decode(envelope.getOutputWanted())); break;
    case wire::Envelope::CREATE_ACTOR:
    case wire::Envelope::CALL:
    case wire::Envelope::PUSH_TASK:
    case wire::Envelope::SIGNAL:
    case wire::Envelope::WANTS:
    case wire::Envelope::LOAN:
    case wire::Envelope::CALL_RESULT:
    case wire::Envelope::ACTOR_READY: return actors_.on_message(peer, from, envelope, frames);
    default: jobs_.on_message(peer, envelope, frames.size() > 1 ? std::move(frames[1]) : transport::Frame{});
  }
  return {};
}

Result<void> Agent::on_peer_request(NodeId from, const wire::Request::Reader& request) {
  const std::string verb = wire::text(request.getVerb()), text = wire::text(request.getJson());
  if (verb == actors::kReleaseVerb) return actors_.on_release(wire::text(request.getFrom()), text, from);
  const auto body = parse_json(text);
  if (verb == kNodeStatusVerb) status_.answer(request.getId(), body);
  if (verb == kDownVerb) down_ = true;
  if (!body.is_object()) return {};
  const ActorId actor{verb == kHasNameVerb || verb == kLostNameVerb ? body.value("actor", std::uint64_t{0}) : 0};
  if (verb == kHasNameVerb) head_.answer(request.getId(), {{"has", actors_.router().has_name(actor)}});
  if (verb == kLostNameVerb) actors_.act(actors_.router().on_name_lost(actor));
  return {};
}

/// It is started again by the cluster's supervisor: what it has to know is on its way before it is there.
void Agent::on_head_gone() {
  head_.on_gone(options_.clock->now());
  if (const auto connected = links_.connect_head(); !connected)
    return log_.error("connect to the head: " + connected.error().text);
  head_.introduce(jobs_, actors_.router(), options_.clock->now());
}

/// What it was asked has failed.
void Agent::on_node_gone(NodeId node, const std::string& how) {
  actors_.on_node_gone(node, how);
  output_.on_node_gone(node);
  report_cut_off(node, how);
}

void Agent::on_unsent(NodeId node, const Error& error) {
  if (error.kind == ErrorKind::disconnected) report_cut_off(node, error.text);
  if (error.kind == ErrorKind::overloaded) jobs_.fail_those_on(node, error.text);
  actors_.on_node_gone(node, node.value < nodes()
                                 ? error.text
                                 : "the cluster has " + std::to_string(nodes()) + " nodes, numbered from 0");
}

void Agent::report_cut_off(NodeId node, const std::string& how) {
  if (const auto jobs = jobs_.cut_off(node, how); !jobs.empty()) head_.tell_cut_off(node, jobs, how);
}

/// A node that is frozen is to be noticed while a job that this one takes part in has workers there, or somebody here
/// has an actor there.
void Agent::depend_on_nodes_in_use() {
  const auto needed = jobs_.other_nodes();
  for (NodeId node{0}; node.value < nodes(); ++node.value)
    if (node != options_.node) links_.depends_on(node, needed.contains(node) || actors_.router().owns_actors_on(node));
}

bool Agent::tell_driver(const JobDriver& driver, wire::Message& message) {
  const bool is_here = driver.node == options_.node;
  if (!is_here && links_.others().is_gone(driver.node)) return false;
  is_here ? void(local_.send(driver.peer, {message.to_frame()})) : links_.send(agent_peer(driver.node), message);
  return true;
}

}  // namespace paceline::cluster
