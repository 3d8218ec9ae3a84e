#include "algorithms/cluster/agent.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "actors/causes.h"
#include "actors/process_client.h"
#include "actors/protocol_wire.h"
#include "algorithms/cluster/done_reply.h"
#include "algorithms/cluster/head.h"
#include "algorithms/cluster/name_requests.h"
#include "algorithms/cluster/training/peer_names.h"
#include "algorithms/cluster/worker_processes.h"
#include "runtime/base/contained.h"
#include "runtime/base/json.h"
#include "runtime/base/turn_budget.h"

namespace paceline::cluster {
namespace {

using nlohmann::json;

const transport::Peer kHead = "head";
constexpr Duration kBacklogLook = std::chrono::milliseconds(1);

/// A worker takes at most so many of the agent's descriptors (a connection, its Unix socket, its session's bell, two
/// pidfds, a window and its control page, an actor's durable state); the rest is for drivers, other agents and fork
/// servers.
constexpr std::size_t kDescriptorsOfWorker = 8;
constexpr std::size_t kOtherDescriptors = 128;

actors::ActorRouter::Options router_options(const Agent::Options& options) {
  actors::ActorRouter::Options router{.node = options.node,
                                      .has = {static_cast<double>(options.cpus), static_cast<double>(options.memory)},
                                      .owner_patience = JobDirectory::kDriverPatience};
  const std::size_t descriptors = std::max(options.descriptors, kOtherDescriptors + kDescriptorsOfWorker);
  const std::size_t workers = (descriptors - kOtherDescriptors) / kDescriptorsOfWorker;
  if (workers >= router.actors_max) return router;
  router.mend = "end some first, or start the cluster where `ulimit -Hn` says " +
                std::to_string(kOtherDescriptors + router.actors_max * kDescriptorsOfWorker) + " (it has " +
                std::to_string(options.descriptors) + " descriptors, and each takes up to " +
                std::to_string(kDescriptorsOfWorker) + ")";
  router.actors_max = workers;
  return router;
}

const Error kHeadGone{ErrorKind::disconnected,
                      "the cluster's head is gone and nobody starts it again: end the cluster with `paceline down`"};

transport::Frame failed_reply(std::uint64_t id, const std::string& to, const Error& error) {
  wire::Message message;
  auto body = message.root().initReply();
  body.setId(id);
  body.setTo(to);
  body.setOk(false);
  actors::write(body.initError(), error);
  return message.to_frame();
}

/// Who made a call or an actor: a peer of this node itself, or one that its agent speaks for.
template <class Message>
std::string owner_of(const transport::Peer& peer, const Message& message) {
  return node_of_peer(peer).value < 0 ? peer : wire::text(message.getOwner());
}

actors::Frames failed_result(const transport::Peer& peer, const wire::Call::Reader& call, const Error& error) {
  return actors::encode(actors::CallResult{TaskId(call.getTask()), owner_of(peer, call), tl::unexpected(error)});
}

}  // namespace

Agent::Agent(Options options, EventLoop& loop, std::unique_ptr<transport::Transport> local,
             std::unique_ptr<transport::Transport> peers, std::unique_ptr<collective::Averager> averager,
             observe::Log log)
    : options_(std::move(options)),
      loop_(loop),
      local_(std::move(local)),
      peers_(std::move(peers)),
      to_local_(*local_),
      log_(std::move(log)),
      router_(router_options(options_)),
      process_ids_(options_.node, options_.starts),
      workers_(make_workers(
          {.ended = [this](WorkerId worker, const auto& end) { on_worker_ended(worker, end); },
           .said = [this](WorkerId worker,
                          process::DescriptorMessage message) { on_worker_said(worker, std::move(message)); },
           .prints = [this](WorkerOutput::Source source) { output_.watch(std::move(source)); },
           .printed = [this](WorkerId worker) { output_.on_worker_ended(worker); }})),
      sessions_(loop_, {.message = [this](WorkerId worker,
                                          channel::Frame frame) { on_session_said(worker, std::move(frame)); },
                        .broken = [this](WorkerId worker, const Error& error) { workers_->end(worker, error.text); }}),
      memory_(memory_options(options_)),
      output_(
          options_.node, loop_, log_,
          {.to_driver = [this](const std::string& driver,
                               actors::Frames frames) { return send_to_driver(driver, std::move(frames)); },
           .to_node = [this](NodeId node, actors::Frames frames) { send_frames(agent_peer(node), std::move(frames)); },
           .others = [this] { return others_.reachable(); }}),
      jobs_(around_jobs(), std::move(averager)),
      others_(options_.node) {}

Agent::~Agent() = default;

std::unique_ptr<Workers> Agent::make_workers(Workers::Listener listener) {
  if (options_.workers) return options_.workers(std::move(listener));
  return std::make_unique<WorkerProcesses>(
      WorkerProcesses::Options{options_.node, options_.directory, options_.local_address}, loop_, log_,
      std::move(listener));
}

Result<void> Agent::start() {
  loop_.on_error([this](const Error& error) { log_.error(error.text); });
  for (const auto& [transport, poll] :
       {std::pair{local_.get(), &Agent::poll_local}, std::pair{peers_.get(), &Agent::poll_peers}})
    if (transport->descriptor() >= 0)  // A simulated one has none.
      PACELINE_TRY(loop_.watch(transport->descriptor(), [this, poll = poll] { (this->*poll)(); }));
  PACELINE_TRY(loop_.watch(jobs_.descriptor(), [this] { jobs_.on_averaged(); }));
  for (auto* const thread : {&background_, &lookout_}) {
    if (!options_.has_threads) break;
    auto background = Background::create();
    if (!background) return tl::unexpected(background.error());
    *thread = *std::move(background);
    PACELINE_TRY(loop_.watch((*thread)->descriptor(), [thread] { (*thread)->take_done(); }));
  }
  PACELINE_TRY(peers_->connect(kHead, options_.head_address));
  register_at_head();
  poll_local();
  poll_peers();
  return {};
}

void Agent::tick(Instant now) {
  loop_.turn([&] { act_on_time(now); });
}

void Agent::act_on_time(Instant now) {
  jobs_.tick(now);
  for (const auto& request : head_.given_up(now)) {
    log_.error("nobody starts the head again: '" + request.verb + "' gets no answer");
    if (request.from != HeadRequests::kSelf)
      send_local(request.from, {failed_reply(request.id, request.from, kHeadGone)});
    else
      on_claim_decided(request.id, tl::unexpected(kHeadGone));
  }
  if (const auto due = router_.next_deadline(); due && *due <= now) act(router_.tick(now));
  output_.tick(now);
  look_at_memory(now);
  to_local_.flush();
  unread_ = false;
  if (local_->descriptor() < 0) poll_local();  // Simulated: no loop tells.
  const auto due = peers_->next_deadline();
  if (peers_->descriptor() < 0 || (due && *due <= now)) poll_peers();
}

std::optional<Instant> Agent::next_deadline() const {
  if (unread_) return options_.clock->now();
  std::optional<Instant> next = earlier(peers_->next_deadline(), head_.next_deadline());
  next = earlier(next, output_.next_deadline());
  next = earlier(next, router_.next_deadline());
  next = earlier(next, next_memory_look());
  if (!to_local_.empty()) next = earlier(next, options_.clock->now() + kBacklogLook);
  return earlier(next, jobs_.next_deadline());
}

// Local peers
// -----------------------------------------------------------------------------------------------------------------

void Agent::poll_local() {
  router_.at(options_.clock->now());
  for (TurnBudget budget(*options_.clock, options_.messages_a_turn); budget.take();) {
    auto event = local_->poll(Duration::zero());
    if (!event) return;
    if (event->kind == transport::Event::Kind::disconnected) on_local_gone(event->peer);
    if (event->kind != transport::Event::Kind::message || event->frames.empty()) continue;
    const auto peer = event->peer;
    auto message = wire::Received::parse(std::move(event->frames.front()));
    if (!message) {
      send_local(peer, {wire::refusal(message.error())});
      continue;
    }
    const auto handled = message->visit([&](const wire::Envelope::Reader& envelope) -> Result<void> {
      if (!is_session(peer)) return on_local(peer, envelope, event->frames);
      jobs_.on_message(peer, envelope, {});
      return {};
    });
    if (!handled) refuse(peer, *message, handled.error());
  }
  poll_again(*local_);
}

/// Others have their turn first.
void Agent::poll_again(const transport::Transport& transport) {
  transport.descriptor() >= 0 ? loop_.call_again(transport.descriptor()) : void(unread_ = true);
}

void Agent::on_hello(const transport::Peer& peer, const wire::Hello::Reader& hello) {
  send_local(peer, {wire::welcome(peer, options_.node, is_session(peer) ? 0 : process_ids_.join(peer))});
  wire::Message nodes;
  const auto& known = others_.known();
  auto list = nodes.root().initNodes().initNodes(static_cast<unsigned>(known.size()));
  for (unsigned i = 0; i < known.size(); ++i) list[i].setNode(known[i].value);
  send_local(peer, {nodes.to_frame()});
  if (wire::text(hello.getRole()) != "worker") return;
  workers_->on_connected(worker_of(peer), hello.getPid());
  act(router_.on_worker_ready(worker_of(peer)));
}

Result<void> Agent::on_local(const transport::Peer& peer, const wire::Envelope::Reader& envelope,
                             std::vector<transport::Frame>& frames) {
  switch (envelope.which()) {
    case wire::Envelope::HELLO: on_hello(peer, envelope.getHello()); break;
    case wire::Envelope::REQUEST: return on_local_request(peer, envelope.getRequest());
    case wire::Envelope::CREATE_ACTOR:
    case wire::Envelope::CALL:
    case wire::Envelope::PUSH_TASK:
    case wire::Envelope::SIGNAL:
    case wire::Envelope::WANTS:
    case wire::Envelope::CALL_RESULT:
    case wire::Envelope::ACTOR_READY: return on_actors(peer, options_.node, envelope, frames);
    case wire::Envelope::ALIVE: jobs_.on_alive(worker_of(peer)); break;
    case wire::Envelope::WAITS: {
      const auto waits = envelope.getWaits();
      act(router_.on_waits(worker_of(peer), actors::awaited(waits)));
      break;
    }
    case wire::Envelope::OUTPUT_WANTED: output_.on_wanted(peer, actors::decode(envelope.getOutputWanted())); break;
    case wire::Envelope::EXECUTABLE: router_.on_executable(peer, actors::decode(envelope.getExecutable())); break;
    default: return fail(ErrorKind::invalid, "sent a message that only others may send");
  }
  return {};
}

/// Of actors and tasks: from a process of this node, which owns what it asks for, or from another node's agent, which
/// says whose it is.
Result<void> Agent::on_actors(const transport::Peer& peer, NodeId from, const wire::Envelope::Reader& envelope,
                              std::vector<transport::Frame>& frames) {
  const auto owned = [&](auto message) {
    if (from == options_.node) message.owner = peer;
    return message;
  };
  const auto done = [this](const auto& actions) { act(actions); };
  switch (envelope.which()) {
    case wire::Envelope::CREATE_ACTOR:
      return actors::decode(envelope.getCreateActor())
          .map([&](actors::CreateActor create) { return router_.on_create(owned(std::move(create)), from); })
          .map(done);
    case wire::Envelope::CALL_RESULT:
      return actors::decode(envelope.getCallResult(), frames)
          .map([&](actors::CallResult result) { return router_.on_result(std::move(result), peer); })
          .map(done);
    case wire::Envelope::ACTOR_READY:
      return actors::decode(envelope.getActorReady())
          .map([&](actors::ActorReady ready) { return router_.on_actor_ready(std::move(ready)); })
          .map(done);
    case wire::Envelope::PUSH_TASK:
      return actors::decode(envelope.getPushTask(), frames)
          .map([&](actors::PushTask push) { return router_.on_push(owned(std::move(push)), from); })
          .map(done);
    case wire::Envelope::SIGNAL:
      return actors::decode(envelope.getSignal())
          .map([&](actors::Signal signal) { return router_.on_signal(owned(std::move(signal)), from); })
          .map(done);
    case wire::Envelope::WANTS: done(router_.on_wants(owned(actors::decode(envelope.getWants())), from)); return {};
    case wire::Envelope::LOAN:
      return actors::decode(envelope.getLoan())
          .map([&](actors::Loan loan) { return router_.on_loan(std::move(loan)); })
          .map(done);
    default:
      return actors::decode(envelope.getCall())
          .map([&](actors::Call call) {
            return call.again ? router_.on_call_again(owned(std::move(call)), from, jobs_.open_ones())
                              : router_.on_call(owned(std::move(call)), from);
          })
          .map(done);
  }
}

Result<void> Agent::on_local_request(const transport::Peer& peer, const wire::Request::Reader& request) {
  const std::string verb = wire::text(request.getVerb());
  if (verb == actors::kReleaseVerb) {
    const auto release = actors::release_from_json(wire::text(request.getJson()));
    if (!release) return tl::unexpected(release.error());
    act(router_.on_release(peer, *release, options_.node));
    return {};
  }
  if (verb == actors::kLineVerb) return tell_line(peer, request);
  if (verb == actors::kLeaveVerb) return let_leave(peer, request);
  if (verb == actors::kCancelVerb) return tell_owner(peer, request);
  return ask_head({peer, request.getId(), verb, wire::text(request.getJson())});
}

/// Where calls to an actor can go past this agent.
Result<void> Agent::tell_line(const transport::Peer& peer, const wire::Request::Reader& request) {
  const auto body = parse_json(wire::text(request.getJson()));
  const auto to = router_.line_to(ActorId(body.is_object() ? body.value("actor", std::uint64_t{0}) : 0));
  if (!to) return tl::unexpected(to.error());
  json line = json::object();
  if (to->worker.value != 0)
    line = {{"peer", actors::worker_peer(to->worker)}, {"path", actors::line_path(options_.directory, to->worker)}};
  if (to->rule != actors::RestartRule{})
    line.update({{"may_restart", to->rule.restarts},
                 {"call_retries", to->rule.call_retries},
                 {"restarts", to->restarts},
                 {"ended", to->ended.text}});
  if (to->ended.causes) {
    const auto& first = to->ended.causes->links.back();
    line.update({{"ended_what", first.what},
                 {"ended_node", first.node},
                 {"ended_worker", first.worker},
                 {"ended_log", readable(first.log)},
                 {"ended_how", first.text}});
  }
  wire::Message message;
  write_done_reply(message, request.getId(), line);
  send_local(peer, {message.to_frame()});
  return {};
}

/// A worker whose actor has asked for its end: what it sent before has been handed on.
Result<void> Agent::let_leave(const transport::Peer& peer, const wire::Request::Reader& request) {
  router_.on_leaving(worker_of(peer));
  wire::Message message;
  write_done_reply(message, request.getId(), json::object());
  send_local(peer, {message.to_frame()});
  return {};
}

/// Of a task or a call, that somebody else does not want it any more.
Result<void> Agent::tell_owner(const transport::Peer& peer, const wire::Request::Reader& request) {
  const auto body = parse_json(wire::text(request.getJson()));
  const TaskId task(body.is_object() ? body.value("task", std::uint64_t{0}) : 0);
  const auto owner = process_ids_.peer_of(actors::process_of(task));
  if (!owner)
    return fail(ErrorKind::not_found, "there is no task or call " + to_string(task) +
                                          ": who has asked for it has ended, or it never was (paceline list workers "
                                          "and tasks name what runs)");
  actors::Signal wish;
  wish.task = task;
  wish.owner = *owner;
  wish.kind = body.value("force", false) ? actors::Signal::Kind::end : actors::Signal::Kind::cancel;
  wish.is_wish = true;
  send_local(*owner, actors::encode(wish));
  wire::Message message;
  write_done_reply(message, request.getId(), {{"owner", *owner}, {"node", options_.node.value}});
  send_local(peer, {message.to_frame()});
  return {};
}

/// The head answers; its reply comes back through here.
Result<void> Agent::ask_head(HeadRequests::Request request) {
  if (!head_.add(request))
    return fail(ErrorKind::overloaded, std::to_string(HeadRequests::kMax) + " requests wait for the head: ask later");
  ask(request);
  return {};
}

void Agent::ask(const HeadRequests::Request& request) {
  wire::Message message;
  auto body = message.root().initRequest();
  body.setId(request.id);
  body.setVerb(request.verb);
  body.setJson(request.json);
  body.setFrom(request.from);
  send_peer(kHead, message);
}

void Agent::on_local_gone(const transport::Peer& peer) {
  to_local_.forget(peer);
  if (is_session(peer)) return;
  act(router_.on_owner_gone(peer));
  output_.on_peer_gone(peer);
  process_ids_.leave(peer);
  if (worker_of(peer).value != 0) return;
  // A driver's jobs end with it, those that the head is just being asked for, too.
  const auto told = ask_head({HeadRequests::kSelf, next_request_++, kGoneVerb, json_text(json{{"peer", peer}})});
  if (!told) log_.error(told.error().text);
}

void Agent::on_session_said(WorkerId worker, channel::Frame frame) {
  const auto peer = "session/" + to_string(worker);
  const auto message = wire::Received::parse(std::move(frame));
  if (!message) return log_.warning(peer + ": " + message.error().text);
  const auto handled =
      message->visit([&](const wire::Envelope::Reader& envelope) { jobs_.on_message(peer, envelope, {}); });
  if (!handled) refuse(peer, *message, handled.error());
}

// Other agents and the head
// -------------------------------------------------------------------------------------------------------

void Agent::poll_peers() {
  router_.at(options_.clock->now());
  for (TurnBudget budget(*options_.clock, options_.messages_a_turn); budget.take();) {
    auto event = peers_->poll(Duration::zero());
    if (!event) return;
    if (event->kind == transport::Event::Kind::disconnected) {
      if (!event->cause.empty()) log_.warning(event->cause);
      if (event->peer == kHead) on_head_gone();
      if (const NodeId node = node_of_peer(event->peer); node.value >= 0)
        on_node_gone(node, event->cause.empty() ? "its agent is gone" : event->cause);
    }
    if (event->kind == transport::Event::Kind::refused)
      log_.warning("a connection was refused, and is tried again: " + event->peer);
    if (event->kind != transport::Event::Kind::message || event->frames.empty()) continue;
    const auto message = wire::Received::parse(std::move(event->frames.front()));
    if (!message) {
      log_.warning(event->peer + ": " + message.error().text);
      continue;
    }
    const auto handled = message->visit(
        [&](const wire::Envelope::Reader& envelope) { return on_peer(event->peer, envelope, event->frames); });
    if (!handled) refuse(event->peer, *message, handled.error());
  }
  poll_again(*peers_);
}

Result<void> Agent::on_peer(const transport::Peer& peer, const wire::Envelope::Reader& envelope,
                            std::vector<transport::Frame>& frames) {
  const NodeId from = node_of_peer(peer);
  others_.heard(from);  // What it asks before it says welcome is to be answered, too.
  switch (envelope.which()) {
    case wire::Envelope::HELLO:
      send_frames(peer, {wire::welcome(peer, options_.node)});
      act(others_.on_hello(from));
      break;
    case wire::Envelope::WELCOME: act(others_.on_welcome(from)); break;
    case wire::Envelope::NODES: on_nodes(envelope.getNodes()); break;
    case wire::Envelope::OPEN_JOB: return jobs_.open(envelope.getOpenJob());
    case wire::Envelope::CLOSE_JOB: close_job(JobId{envelope.getCloseJob().getJob()}); break;
    case wire::Envelope::NODE_GONE: jobs_.on_node_gone(envelope.getNodeGone()); break;
    case wire::Envelope::JOB_DRIVEN: {
      const auto driver = read_driver(envelope.getJobDriven().getDriver());
      router_.on_driver_moved(driver.peer, driver.node);
      output_.on_driver_moved(driver.peer, driver.node);
      jobs_.on_driven(envelope.getJobDriven());
      break;
    }
    case wire::Envelope::REPLY: on_reply(envelope.getReply()); break;
    case wire::Envelope::JOB_EVENT: {
      wire::Message copy;
      copy.root().setJobEvent(envelope.getJobEvent());
      send_local(wire::text(envelope.getJobEvent().getTo()), {copy.to_frame()});
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
    case wire::Envelope::ACTOR_READY: return on_actors(peer, from, envelope, frames);
    default: jobs_.on_message(peer, envelope, frames.size() > 1 ? std::move(frames[1]) : transport::Frame{});
  }
  return {};
}

Result<void> Agent::on_peer_request(NodeId from, const wire::Request::Reader& request) {
  const std::string verb = wire::text(request.getVerb());
  if (verb == "node_status") on_node_status(request.getId(), parse_json(wire::text(request.getJson())));
  if (verb == kDownVerb) down_ = true;
  if (verb == kHasNameVerb || verb == kLostNameVerb) {
    const auto body = parse_json(wire::text(request.getJson()));
    if (!body.is_object()) return {};
    if (verb == kHasNameVerb) tell_whether_named(request.getId(), body);
    if (verb == kLostNameVerb) act(router_.on_name_lost(ActorId{body.value("actor", std::uint64_t{0})}));
  }
  if (verb != actors::kReleaseVerb) return {};
  const auto release = actors::release_from_json(wire::text(request.getJson()));
  if (!release) return tl::unexpected(release.error());
  act(router_.on_release(wire::text(request.getFrom()), *release, from));
  return {};
}

void Agent::on_reply(const wire::Reply::Reader& reply) {
  const std::string to = wire::text(reply.getTo());
  const bool is_first = head_.answered(to, reply.getId());
  if (to == HeadRequests::kSelf) {
    Result<std::string> said = wire::text(reply.getJson());
    if (!reply.getOk()) said = tl::unexpected(actors::read(reply.getError()));
    return on_claim_decided(reply.getId(), said);
  }
  if (!is_first) return;
  wire::Message copy;
  copy.root().setReply(reply);
  send_local(to, {copy.to_frame()});
}

/// It is started again by the cluster's supervisor: what it has to know is on its way before it is there.
void Agent::on_head_gone() {
  if (!head_.gone()) log_.warning("the head is gone: all goes on without it until it is there again");
  head_.on_head_gone(options_.clock->now());
  others_.on_head_gone();
  peers_->disconnect(kHead);
  if (const auto connected = peers_->connect(kHead, options_.head_address); !connected)
    return log_.error("connect to the head: " + connected.error().text);
  register_at_head();
}

void Agent::register_at_head() {
  const Instant now = options_.clock->now();
  for (const auto& [id, entry] : jobs_.entries()) {
    wire::Message runs;
    write_job(runs.root().initOpenJob(), id, entry, now);
    send_peer(kHead, runs);
  }
  tell_names();
  wire::Message hello;
  auto body = hello.root().initHello();
  body.setRole("agent");
  body.setName(agent_peer(options_.node));
  body.setPid(getpid());
  body.setAddress(options_.peer_address);
  body.setCpus(options_.cpus);
  body.setMemory(options_.memory);
  body.setIncarnation(options_.incarnation);
  body.setNewestJob(jobs_.newest().value);
  send_peer(kHead, hello);
  for (const auto& request : head_.waiting()) ask(request);
  // The head before this one may have waited for another's word.
  for (const auto& cut : jobs_.all_cut_off()) tell_cut_off(cut.node, {cut.job}, cut.how);
}

void Agent::on_nodes(const wire::Nodes::Reader& nodes) {
  head_.on_head_back();
  std::vector<OtherAgents::Known> known;
  for (const auto entry : nodes.getNodes())
    known.push_back({NodeId{entry.getNode()},
                     wire::text(entry.getAddress()),
                     {static_cast<double>(entry.getCpus()), static_cast<double>(entry.getMemory())}});
  act(others_.on_nodes(nodes.getEpoch(), known));
}

void Agent::act(const OtherAgents::Actions& actions) {
  for (const auto& action : actions) std::visit([this](const auto& a) { carry_out(a); }, action);
}

void Agent::carry_out(const OtherAgents::Connect& connect) {
  const auto peer = agent_peer(connect.node);
  peers_->disconnect(peer);
  if (auto connected = peers_->connect(peer, connect.address); !connected)
    log_.error("connect to " + peer + ": " + connected.error().text);
  wire::Message hello;  // Makes us known there by name, before anything is to be sent.
  auto body = hello.root().initHello();
  body.setRole("agent");
  body.setName(agent_peer(options_.node));
  if (const auto sent = peers_->send(peer, {hello.to_frame()}); !sent) log_.warning(peer + ": " + sent.error().text);
}

void Agent::carry_out(const OtherAgents::TellLinked& told) {
  wire::Message linked;
  auto body = linked.root().initRequest();
  body.setVerb(kLinkedVerb);
  body.setJson(json_text(json{{"epoch", told.epoch}}));
  send_peer(kHead, linked);
}

void Agent::carry_out(const OtherAgents::Reachable& reachable) { act(router_.on_node(reachable.node, reachable.has)); }

/// What it was asked has failed.
void Agent::on_node_gone(NodeId node, const std::string& how) {
  act(router_.on_node_gone(node, how, jobs_.open_ones()));
  output_.on_node_gone(node);
  report_cut_off(node, how);
  act(others_.on_gone(node, how));
}

/// What was on its way between the two is lost: the head decides which of them goes on with their jobs.
void Agent::report_cut_off(NodeId node, const std::string& how) {
  const auto jobs = jobs_.cut_off(node, how);
  if (!jobs.empty()) tell_cut_off(node, jobs, how);
}

void Agent::tell_cut_off(NodeId node, const std::vector<JobId>& jobs, const std::string& how) {
  json list = json::array();
  for (const JobId job : jobs) list.push_back(job.value);
  const auto told = ask_head({HeadRequests::kSelf, next_request_++, kCutOffVerb,
                              json_text(json{{"node", node.value}, {"jobs", list}, {"cause", how}})});
  if (!told) log_.error(told.error().text);
}

/// A node that is frozen is to be noticed while a job that this one takes part in has workers there, or somebody here
/// has an actor there.
void Agent::depend_on_nodes_in_use() {
  const auto needed = jobs_.other_nodes();
  actors_elsewhere_ = router_.actors_elsewhere();
  for (NodeId node{0}; node.value < options_.nodes; ++node.value)
    if (node != options_.node)
      peers_->depends_on(agent_peer(node), needed.contains(node) || router_.owns_actors_on(node));
}

// Actors
// --------------------------------------------------------------------------------------------------------------------------

void Agent::act(const actors::ActorRouter::Actions& actions) {
  for (const auto& action : actions) std::visit([this](const auto& a) { carry_out(a); }, action);
  if (router_.actors_elsewhere() != actors_elsewhere_) depend_on_nodes_in_use();
}

void Agent::carry_out(const actors::ActorRouter::Fork& fork) {
  spans_.begin(fork.worker, {fork.root, fork.name, fork.type});
  workers_->fork(fork);
}

void Agent::carry_out(const actors::ActorRouter::Kill& kill) { workers_->end(kill.worker, kill.why); }

void Agent::carry_out(const actors::ActorRouter::Send& send) {
  send_local(send.peer, std::visit([](const auto& message) { return actors::encode(message); }, send.message));
}

void Agent::carry_out(const actors::ActorRouter::Warn& warn) {
  log_.info(warn.text);
  if (!warn.driver.empty()) output_.say({warn.driver, warn.node}, warn.text);
}

void Agent::carry_out(const actors::ActorRouter::Forget& forget) {
  auto state = states_.forget(forget.actor);
  if (!state) return;
  beside(
      [memory = std::make_shared<process::Fd>(std::move(state))]() -> Result<void> {
        memory->reset();
        return {};
      },
      [](const Result<void>&) {});
}

void Agent::carry_out(const actors::ActorRouter::Forward& forward) {
  const auto peer = agent_peer(forward.node);
  if (const auto* release = std::get_if<actors::Release>(&forward.message)) {
    wire::Message message;
    auto body = message.root().initRequest();
    body.setVerb(actors::kReleaseVerb);
    body.setJson(actors::to_json(*release));
    body.setFrom(forward.owner);
    return send_peer(peer, message);
  }
  auto frames = std::visit(
      [](const auto& message) -> actors::Frames {
        if constexpr (std::is_same_v<std::decay_t<decltype(message)>, actors::Release>) {
          return {};
        } else {
          return actors::encode(message);
        }
      },
      forward.message);
  send_frames(peer, std::move(frames));
}

// Processes
// -------------------------------------------------------------------------------------------------------------------------

void Agent::on_worker_ended(WorkerId worker, const Workers::Listener::End& end) {
  sessions_.close(worker);
  (void)::unlink(actors::line_path(options_.directory, worker).c_str());
  const Instant now = options_.clock->now();
  spans_.end(worker, now);
  memory_.on_gone(worker);
  router_.at(now);
  jobs_.on_worker_gone(worker, end.how, end.failed);
  act(router_.on_worker_gone(worker, end.how, end.log));
}

void Agent::on_worker_said(WorkerId worker, process::DescriptorMessage message) {
  using Kind = process::DescriptorMessage::Kind;
  switch (message.kind) {
    case Kind::open_channel: return open_session(worker, message.request);
    case Kind::find_state: return give_state(worker, message.request);
    case Kind::keep_state: return keep_state(worker, message.request, std::move(message.fds.front()));
    case Kind::spans: return spans_.keep(worker, workers_->pid(worker), std::move(message.fds.front()));
    case Kind::captured: return jobs_.on_captured(worker, message.body, std::move(message.fds.front()));
    case Kind::answer:
    case Kind::failure: return;  // It has not been asked.
  }
}

void Agent::open_session(WorkerId worker, std::uint64_t request) {
  const auto opened = sessions_.open(worker, [&](const std::vector<process::BorrowedFd>& descriptors) {
    workers_->answer(worker, request, {}, descriptors);
  });
  if (!opened) workers_->answer(worker, request, tl::unexpected(opened.error()), {});
}

/// What the actor's process before this one has given to be kept.
void Agent::give_state(WorkerId worker, std::uint64_t request) {
  std::vector<process::BorrowedFd> found;
  if (const auto* const state = states_.find(router_.restartable_of(worker))) found.emplace_back(*state);
  workers_->answer(worker, request, {}, found);
}

void Agent::keep_state(WorkerId worker, std::uint64_t request, process::Fd state) {
  const ActorId actor = router_.restartable_of(worker);
  const auto kept = actor.value == 0
                        ? fail(ErrorKind::invalid, "nothing is kept of what is no actor that may be started again")
                        : states_.keep(actor, std::move(state));
  workers_->answer(worker, request, kept.map([] { return std::string(); }), {});
}

// Jobs
// --------------------------------------------------------------------------------------------------------------------------------

NodeJobs::Around Agent::around_jobs() {
  return {options_.node,
          *options_.clock,
          log_,
          [this] { return outbox_of_job(); },
          [this](const JobDriver& driver, wire::Message& event) { return tell_driver(driver, event); },
          [this] { depend_on_nodes_in_use(); }};
}

JobOutbox Agent::outbox_of_job() {
  JobOutbox outbox;
  outbox.to_node = [this](NodeId node, wire::Message& message, std::vector<transport::Piece> bulk) {
    send_peer(agent_peer(node), message, std::move(bulk));
  };
  outbox.answer = [this](WorkerId worker, std::uint64_t request, wire::Message& message,
                         const std::vector<process::BorrowedFd>& fds) {
    workers_->answer(worker, request, message.to_packet(), fds);
  };
  outbox.refuse = [this](WorkerId worker, std::uint64_t request, const Error& error) {
    workers_->answer(worker, request, tl::unexpected(error), {});
  };
  outbox.ask_for_life = [this](WorkerId worker) {
    wire::Message message;
    message.root().initAlive();
    send_local("worker/" + to_string(worker), {message.to_frame()});
  };
  outbox.beside = [this](auto work, auto follows) { beside(std::move(work), std::move(follows)); };
  outbox.end_worker = [this](WorkerId worker, const std::string& why) { act(router_.end_worker(worker, why)); };
  outbox.process_id = [this](WorkerId worker) { return workers_->pid(worker); };
  outbox.process_state = [this](WorkerId worker) { return workers_->state(worker); };
  return outbox;
}

void Agent::beside(std::function<Result<void>()> work, std::function<void(Result<void>)> follows) {
  if (background_) return background_->run(std::move(work), std::move(follows));
  follows(contained(work));
}

void Agent::close_job(JobId job) {
  jobs_.close(job);
  act(router_.on_job_closed(job));
}

bool Agent::tell_driver(const JobDriver& driver, wire::Message& message) {
  const bool is_here = driver.node == options_.node;
  if (!is_here && others_.is_gone(driver.node)) return false;
  is_here ? send_local(driver.peer, {message.to_frame()}) : send_peer(agent_peer(driver.node), message);
  return true;
}

/// What was wrong with a message, for whoever waits for its answer.
void Agent::refuse(const transport::Peer& peer, const wire::Received& message, const Error& error) {
  log_.warning(peer + ": " + error.text);
  (void)message.visit([&](const wire::Envelope::Reader& envelope) { answer(peer, envelope, error); });
}

void Agent::answer(const transport::Peer& peer, const wire::Envelope::Reader& envelope, const Error& error) {
  switch (envelope.which()) {
    case wire::Envelope::REQUEST: {
      const auto request = envelope.getRequest();
      return send(peer, {failed_reply(request.getId(), wire::text(request.getFrom()), error)});
    }
    case wire::Envelope::CREATE_ACTOR: {
      const auto create = envelope.getCreateActor();
      return send(peer,
                  actors::encode(actors::ActorReady{ActorId(create.getActor()), owner_of(peer, create), true, error}));
    }
    case wire::Envelope::CALL: return send(peer, failed_result(peer, envelope.getCall(), error));
    default: break;
  }
  jobs_.on_unreadable(envelope, peer + ": " + error.text);
}

void Agent::send(const transport::Peer& peer, std::vector<transport::Frame> frames) {
  node_of_peer(peer).value >= 0 || peer == kHead ? send_frames(peer, std::move(frames))
                                                 : send_local(peer, std::move(frames));
}

void Agent::send_local(const transport::Peer& peer, std::vector<transport::Frame> frames) {
  const auto sent = to_local_.send(peer, std::move(frames));
  if (sent || sent.error().kind == ErrorKind::disconnected) return;  // Its end is told, or has been.
  give_up(peer, sent.error());
}

/// Whether it is there.
bool Agent::send_to_driver(const transport::Peer& peer, std::vector<transport::Frame> frames) {
  const auto sent = to_local_.send(peer, std::move(frames));
  if (!sent && sent.error().kind != ErrorKind::disconnected) give_up(peer, sent.error());
  return sent.has_value();
}

/// A process of this node that takes nothing for long is ended: its callers hear of it then.
void Agent::give_up(const transport::Peer& peer, const Error& error) {
  log_.error(error.text + ": the connection ends");
  to_local_.forget(peer);
  if (const WorkerId worker = worker_of(peer); worker.value != 0) return workers_->end(worker, error.text);
  local_->disconnect(peer);
  on_local_gone(peer);
}

void Agent::send_peer(const transport::Peer& peer, wire::Message& message, std::vector<transport::Piece> bulk) {
  const auto cut_off = others_.cut_off(node_of_peer(peer));
  if (cut_off) return on_unsent(peer, {ErrorKind::disconnected, *cut_off});
  if (const auto sent = peers_->send_pieces(peer, message.to_frame(), std::move(bulk)); !sent)
    on_unsent(peer, sent.error());
}

void Agent::send_frames(const transport::Peer& peer, std::vector<transport::Frame> frames) {
  const auto cut_off = others_.cut_off(node_of_peer(peer));
  if (cut_off) return on_unsent(peer, {ErrorKind::disconnected, *cut_off});
  if (const auto sent = peers_->send(peer, std::move(frames)); !sent) on_unsent(peer, sent.error());
}

void Agent::on_unsent(const transport::Peer& peer, const Error& error) {
  const NodeId node = node_of_peer(peer);
  log_.warning(peer + ": " + error.text);
  if (node.value < 0) return;
  if (error.kind == ErrorKind::disconnected) report_cut_off(node, error.text);
  if (error.kind == ErrorKind::overloaded) jobs_.fail_those_on(node, error.text);
  act(router_.on_node_gone(node,
                           node.value < options_.nodes
                               ? error.text
                               : "the cluster has " + std::to_string(options_.nodes) + " nodes, numbered from 0",
                           jobs_.open_ones()));
}

}  // namespace paceline::cluster
