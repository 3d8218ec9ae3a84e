#include "algorithms/cluster/head.h"

#include <utility>

#include "actors/process_ids.h"
#include "actors/protocol_wire.h"
#include "algorithms/cluster/name_requests.h"
#include "algorithms/cluster/training/peer_names.h"
#include "runtime/base/contained.h"
#include "runtime/base/json.h"

namespace paceline::cluster {
namespace {

using nlohmann::json;

constexpr Duration kNodesPatience = std::chrono::seconds(5);  // For one that is started again.
constexpr std::size_t kWaitingMax = 1024;
constexpr const char* kDriveVerb = "drive";

}  // namespace

Head::Head(Options options, std::unique_ptr<transport::Transport> transport)
    : links_(std::move(transport), options.nodes),
      jobs_(options.start, std::move(options.store),
            {links_, std::move(options.wall), [this] { depend_on_nodes_in_use(); }}),
      names_(links_, {.again = [this](const auto& request, Instant now) { answer_when_ready(request, now); },
                      .found = [this] { depend_on_nodes_in_use(); }}),
      status_(std::move(options.cluster), links_, jobs_, names_.directory()) {}

void Head::poll(Instant now) {
  while (auto event = links_.transport().poll(Duration::zero())) {
    if (event->kind == transport::Event::Kind::disconnected) on_gone(*event, now);
    if (event->kind != transport::Event::Kind::message || event->frames.empty()) continue;
    auto message = wire::Received::parse(std::move(event->frames.front()));
    if (!message) {
      (void)links_.transport().send(event->peer, {wire::refusal(message.error())});
      continue;
    }
    const auto handled =
        message->visit([&](const wire::Envelope::Reader& envelope) { on_message(event->peer, envelope, now); });
    if (handled) continue;
    (void)message->visit([&](const wire::Envelope::Reader& envelope) {
      if (envelope.isRequest())
        links_.reply(asker_of(event->peer, envelope.getRequest()), tl::unexpected(handled.error()));
    });
  }
}

Head::Asker Head::asker_of(const transport::Peer& peer, const wire::Request::Reader& request) {
  return {peer, wire::text(request.getFrom()), request.getId()};
}

void Head::on_message(const transport::Peer& peer, const wire::Envelope::Reader& envelope, Instant now) {
  const NodeId node = node_of_peer(peer);
  switch (envelope.which()) {
    case wire::Envelope::HELLO: return on_hello(peer, envelope.getHello(), now);
    case wire::Envelope::OPEN_JOB:
      if (node.value >= 0) jobs_.on_runs(node, envelope.getOpenJob(), now);
      return;
    case wire::Envelope::REQUEST: {
      const auto request = envelope.getRequest();
      const Asker asker = asker_of(peer, request);
      const auto body = parse_json(wire::text(request.getJson()));
      return on_request(asker, wire::text(request.getVerb()), body.is_object() ? body : json::object(), now);
    }
    case wire::Envelope::REPLY: {  // An agent's answer to node_status or has_name.
      const auto answer = envelope.getReply();
      const auto said = parse_json(wire::text(answer.getJson()));
      return names_.has_asked(answer.getId()) ? names_.on_confirmed(answer.getId(), said, now)
                                              : status_.on_answer(answer.getId(), node, said, now);
    }
    default: return;
  }
}

void Head::on_hello(const transport::Peer& peer, const wire::Hello::Reader& hello, Instant now) {
  const NodeId node = node_of_peer(peer);
  if (node.value < 0 || node.value >= actors::kNodesMax) return;
  links_.on_hello(node, peer, hello);
  jobs_.on_registered(node, hello, now);
  answer_drivers(now);
  depend_on_nodes_in_use();
  status_.on_registered(peer);
}

void Head::on_gone(const transport::Event& gone, Instant now) {
  const NodeId node = node_of_peer(gone.peer);
  const bool was_here = links_.erase(node);
  // Who is only cut off asks again when it is back; whoever was at a process that ended is gone with it.
  std::erase_if(waiting_, [&](const Waiting& waiting) { return waiting.request.asker.agent == gone.peer; });
  names_.on_node_gone(node, now);
  if (!was_here) return;
  jobs_.on_node_gone(node, gone, now);
  links_.begin_epoch();
}

/// A node that is frozen is to be noticed while a job has workers there, or an actor with a name is there.
void Head::depend_on_nodes_in_use() {
  std::set<NodeId> needed = jobs_.nodes();
  needed.merge(names_.directory().nodes());
  links_.depend_on(needed);
}

void Head::on_request(const Asker& asker, const std::string& verb, const json& body, Instant now) {
  const NodeId agent = node_of_peer(asker.agent);
  if (verb == kLinkedVerb) {
    if (!links_.on_linked(agent, body.value("epoch", std::int64_t{0}))) return;
    jobs_.look_at_nodes(now);
    if (ready())
      for (const auto& waiting : std::exchange(waiting_, {})) answer(waiting.request, now);
    return;
  }
  if (verb == kGoneVerb) {
    const auto gone = body.value("peer", "");
    std::erase_if(waiting_, [&](const Waiting& one) {
      return one.request.asker.agent == asker.agent && one.request.asker.from == gone;
    });
    jobs_.on_driver_gone(agent, gone, now);
    return links_.reply(asker, json::object());
  }
  if (verb == kCutOffVerb) {
    jobs_.on_cut_off(agent, body, now);
    return links_.reply(asker, json::object());
  }
  if (verb == kLeftVerb) {
    jobs_.on_left(agent, body);
    return links_.reply(asker, json::object());
  }
  if (verb == "submit" || verb == kClaimVerb || verb == actors::kFindVerb)
    return answer_when_ready({asker, verb, body}, now);
  if (verb == kUnclaimVerb) return names_.on_unclaim(body);
  if (verb == kNamesVerb) return names_.on_names(asker.agent, body);
  if (verb == "stop") return links_.reply(asker, jobs_.stop(body));
  if (verb == "scale") return links_.reply(asker, jobs_.scale(body));
  if (verb == "drain") return links_.reply(asker, jobs_.drain(body));
  if (verb == "let_go") return links_.reply(asker, jobs_.let_go(body));
  if (verb == "move_places") return links_.reply(asker, jobs_.move_places(body, now));
  if (verb == "set") return links_.reply(asker, jobs_.set(body, now));
  if (verb == kDriveVerb) {
    waiting_.push_back({{asker, verb, body}, now + kNodesPatience});
    return answer_drivers(now);
  }
  if (verb == "close") {
    jobs_.close(body, now);
    return links_.reply(asker, json::object());  // Closed already is closed, too: it may be asked twice.
  }
  if (verb == "status") return status_.start(next_request_++, asker, body, now);
  if (verb == kDownVerb) return end_cluster(asker);
  links_.reply(asker, fail(ErrorKind::invalid, "the head knows no request '" + verb + "'"));
}

void Head::answer_when_ready(const HeadNames::Request& request, Instant now) {
  waiting_.push_back({request, now + kNodesPatience});
  if (!ready() && waiting_.size() <= kWaitingMax) return;
  const Waiting waiting = std::move(waiting_.back());
  waiting_.pop_back();
  answer(waiting.request, now);
}

void Head::answer(const HeadNames::Request& request, Instant now) {
  if (request.verb == kDriveVerb)
    return links_.reply(request.asker, jobs_.move_driver(request.asker, request.body, now));
  if (request.verb != "submit") return names_.ask(next_request_++, request, now);
  Result<json> said;
  const auto made = contained([&] { said = jobs_.submit(request.asker, request.body, now); });
  links_.reply(request.asker, made ? said : tl::unexpected(made.error()));
}

/// Those whose jobs are known: a head that is started anew hears of them from the agents.
void Head::answer_drivers(Instant now) {
  answer_those(now, [this](const Waiting& waiting) {
    const auto& [asker, verb, body] = waiting.request;
    return verb == kDriveVerb && jobs_.directory().find(JobId{body.value("job", std::uint64_t{0})}) != nullptr;
  });
}

/// Whose time is up stays for tick().
void Head::answer_those(Instant now, const std::function<bool(const Waiting&)>& is_due) {
  for (const auto& waiting : std::exchange(waiting_, {})) {
    if (is_due(waiting)) {
      answer(waiting.request, now);
    } else {
      waiting_.push_back(waiting);
    }
  }
}

void Head::end_cluster(const Asker& asker) {
  down_ = true;
  links_.reply(asker, json::object());
  wire::Message message;
  message.root().initRequest().setVerb(kDownVerb);
  links_.to_all(message);
}

void Head::tick(Instant now) {
  if (const auto due = links_.transport().next_deadline(); due && *due <= now) poll(now);
  status_.tick(now);
  answer_those(now, [now](const Waiting& waiting) { return now >= waiting.until; });
  jobs_.tick(now);
}

std::optional<Instant> Head::next_deadline() const {
  auto deadline = earlier(earlier(links_.transport().next_deadline(), jobs_.next_deadline()), status_.next_deadline());
  for (const auto& waiting : waiting_) deadline = earlier(deadline, waiting.until);
  return deadline;
}

}  // namespace paceline::cluster
