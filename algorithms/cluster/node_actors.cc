#include "algorithms/cluster/node_actors.h"

#include <algorithm>
#include <type_traits>
#include <utility>
#include <variant>

#include "actors/causes.h"
#include "actors/protocol_wire.h"
#include "algorithms/cluster/job_directory.h"
#include "algorithms/cluster/name_requests.h"
#include "algorithms/cluster/requests.h"
#include "algorithms/cluster/training/peer_names.h"
#include "runtime/base/json.h"

namespace paceline::cluster {
namespace {

using actors::ActorRouter;
using nlohmann::json;

/// A worker takes at most so many of the agent's descriptors (a connection, its Unix socket, its session's bell, two
/// pidfds, a window and its control page, an actor's durable state); the rest is for drivers, other agents and fork
/// servers.
constexpr std::size_t kDescriptorsOfWorker = 8;
constexpr std::size_t kOtherDescriptors = 128;

ActorRouter::Options router_options(const NodeActors::Options& options) {
  ActorRouter::Options router{.node = options.node,
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

}  // namespace

NodeActors::NodeActors(Options options, Around around)
    : options_(std::move(options)),
      around_(std::move(around)),
      router_(router_options(options_)),
      process_ids_(options_.node, options_.starts) {}

void NodeActors::act(const ActorRouter::Actions& actions) {
  for (const auto& action : actions) std::visit([this](const auto& a) { carry_out(a); }, action);
  if (router_.actors_elsewhere() == elsewhere_) return;
  elsewhere_ = router_.actors_elsewhere();
  around_.elsewhere_changed();
}

Result<void> NodeActors::on_message(const transport::Peer& peer, NodeId from, const wire::Envelope::Reader& envelope,
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
            return call.again ? router_.on_call_again(owned(std::move(call)), from, around_.open_jobs())
                              : router_.on_call(owned(std::move(call)), from);
          })
          .map(done);
  }
}

Result<void> NodeActors::on_release(const std::string& owner, const std::string& body, NodeId from) {
  return actors::release_from_json(body).map(
      [&](const actors::Release& release) { act(router_.on_release(owner, release, from)); });
}

void NodeActors::on_node_gone(NodeId node, const std::string& how) {
  act(router_.on_node_gone(node, how, around_.open_jobs()));
}

void NodeActors::carry_out(const ActorRouter::Send& send) {
  around_.local.send(send.peer, std::visit([](const auto& message) { return actors::encode(message); }, send.message));
}

void NodeActors::carry_out(const ActorRouter::Forward& forward) {
  auto frames = std::visit(
      [&](const auto& message) -> actors::Frames {
        if constexpr (std::is_same_v<std::decay_t<decltype(message)>, actors::Release>) {
          wire::Message request;
          write_request(request, {forward.owner, 0, actors::kReleaseVerb, actors::to_json(message)});
          return {request.to_frame()};
        } else {
          return actors::encode(message);
        }
      },
      forward.message);
  around_.links.send_frames(agent_peer(forward.node), std::move(frames));
}

void NodeActors::carry_out(const ActorRouter::Warn& warn) {
  around_.log.info(warn.text);
  if (!warn.driver.empty()) around_.output.say({warn.driver, warn.node}, warn.text);
}

void NodeActors::carry_out(const ActorRouter::Forget& forget) {
  if (auto state = around_.workers.forget(forget.actor)) around_.drop(std::move(state));
}

void NodeActors::end_for_memory(WorkerId worker, const std::string& why) {
  carry_out(router_.warning_about(worker, why));
  around_.workers.processes().end(worker, why);
}

// What processes of this node ask for
// -----------------------------------------------------------------------------------------------------------------

std::optional<Result<json>> NodeActors::answer(const transport::Peer& peer, const std::string& verb,
                                               const std::string& text) {
  if (verb == actors::kLineVerb) return line(parse_json(text));
  if (verb == actors::kCancelVerb) return tell_owner(parse_json(text));
  if (verb != actors::kLeaveVerb) return std::nullopt;
  router_.on_leaving(worker_of(peer));  // Its actor has asked for its end: what it sent before has been handed on.
  return json::object();
}

/// Where calls to an actor can go past this agent.
Result<json> NodeActors::line(const json& body) const {
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
  return line;
}

/// Of a task or a call, that somebody else does not want it any more.
Result<json> NodeActors::tell_owner(const json& body) {
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
  around_.local.send(*owner, actors::encode(wish));
  return json{{"owner", *owner}, {"node", options_.node.value}};
}

// Names of actors
// -----------------------------------------------------------------------------------------------------------------

void NodeActors::carry_out(const ActorRouter::Claim& claim) {
  const auto asked = around_.head.ask(kClaimVerb, to_json(claim.claim));
  if (!asked) return act(router_.on_claim_refused(claim.claim.actor, asked.error()));
  claims_.emplace(*asked, claim.claim.actor);
}

/// Not asked again: a head that is started anew is told all names that there are.
void NodeActors::carry_out(const ActorRouter::Unclaim& unclaim) {
  around_.head.tell_once(kUnclaimVerb, {{"actor", unclaim.actor.value}, {"name", unclaim.name}});
}

/// An answer that comes twice is taken for what it says: what has a name that it does not claim gives it back.
void NodeActors::on_answer(std::uint64_t request, const Result<std::string>& answer) {
  const auto claim = claims_.extract(request);
  if (!answer) return claim ? act(router_.on_claim_refused(claim.mapped(), answer.error())) : void();
  const auto told = parse_json(*answer);
  if (!told.is_object() || !told.contains("asked")) return;
  act(router_.on_claimed(ActorId{told.value("asked", std::uint64_t{0})}, told.value("name", ""),
                         ActorId{told.value("actor", std::uint64_t{0})}));
}

}  // namespace paceline::cluster
