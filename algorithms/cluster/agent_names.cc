// What an agent and the head say to each other about the names of actors (name_requests.h).
#include "algorithms/cluster/agent.h"
#include "algorithms/cluster/done_reply.h"
#include "algorithms/cluster/name_requests.h"
#include "runtime/base/json.h"

namespace paceline::cluster {

using nlohmann::json;

namespace {

const transport::Peer kHead = "head";

}  // namespace

void Agent::carry_out(const actors::ActorRouter::Claim& claim) {
  const auto id = next_request_++;
  claims_.emplace(id, claim.claim.actor);
  const auto told = ask_head({HeadRequests::kSelf, id, kClaimVerb, json_text(to_json(claim.claim))});
  if (!told) on_claim_decided(id, tl::unexpected(told.error()));
}

/// Not asked again: a head that is started anew is told all names that there are.
void Agent::carry_out(const actors::ActorRouter::Unclaim& unclaim) {
  wire::Message message;
  auto body = message.root().initRequest();
  body.setVerb(kUnclaimVerb);
  body.setJson(json_text(json{{"actor", unclaim.actor.value}, {"name", unclaim.name}}));
  send_peer(kHead, message);
}

/// An answer that comes twice is taken for what it says: what has a name that it does not claim gives it back.
void Agent::on_claim_decided(std::uint64_t request, const Result<std::string>& answer) {
  const auto claim = claims_.extract(request);
  if (!answer) return claim ? act(router_.on_claim_refused(claim.mapped(), answer.error())) : void();
  const auto told = parse_json(*answer);
  if (!told.is_object() || !told.contains("asked")) return;
  act(router_.on_claimed(ActorId{told.value("asked", std::uint64_t{0})}, told.value("name", ""),
                         ActorId{told.value("actor", std::uint64_t{0})}));
}

void Agent::tell_names() {
  wire::Message message;
  auto body = message.root().initRequest();
  body.setVerb(kNamesVerb);
  body.setJson(json_text(to_json(router_.names())));
  send_peer(kHead, message);
}

void Agent::tell_whether_named(std::uint64_t request, const json& body) {
  wire::Message message;
  write_done_reply(message, request, {{"has", router_.has_name(ActorId{body.value("actor", std::uint64_t{0})})}});
  send_peer(kHead, message);
}

}  // namespace paceline::cluster
