#include "algorithms/cluster/head_names.h"

#include <utility>
#include <variant>

#include "algorithms/cluster/name_requests.h"
#include "algorithms/cluster/requests.h"
#include "algorithms/cluster/training/peer_names.h"
#include "runtime/base/contained.h"

namespace paceline::cluster {

using nlohmann::json;

void HeadNames::ask(std::uint64_t number, const Request& request, Instant now) {
  NameDirectory::Actions actions;
  const auto read = contained([&] {
    actions = request.verb == kClaimVerb
                  ? directory_.on_claim(number, claim_from(request.body))
                  : directory_.on_find(number, request.body.value("name", ""), request.body.value("type", ""));
  });
  if (!read) return links_.reply(request.asker, tl::unexpected(read.error()));
  requests_.emplace(number, request);
  act(actions, now);
}

void HeadNames::on_confirmed(std::uint64_t number, const json& said, Instant now) {
  act(directory_.on_confirmed(number, said.is_object() && said.value("has", false)), now);
}

void HeadNames::on_unclaim(const json& body) {
  directory_.on_unclaim(body.value("name", ""), ActorId{body.value("actor", std::uint64_t{0})});
}

void HeadNames::on_names(const transport::Peer& agent, const json& body) {
  for (const ActorId lost : directory_.on_told(node_of_peer(agent), names_from(body))) {
    wire::Message message;
    write_request(message, kLostNameVerb, {{"actor", lost.value}});
    links_.send(agent, message);
  }
}

void HeadNames::act(const NameDirectory::Actions& actions, Instant now) {
  for (const auto& action : actions) std::visit([&](const auto& a) { carry_out(a, now); }, action);
}

void HeadNames::carry_out(const NameDirectory::Found& found, Instant) {
  const auto asked = requests_.extract(found.request);
  if (!asked) return;
  const auto& body = asked.mapped().body;
  links_.reply(asked.mapped().asker, json{{"actor", found.actor.value},
                                          {"asked", body.value("actor", std::uint64_t{0})},
                                          {"name", body.value("name", "")}});
  listener_.found();
}

void HeadNames::carry_out(const NameDirectory::Refused& refused, Instant) {
  if (const auto asked = requests_.extract(refused.request))
    links_.reply(asked.mapped().asker, tl::unexpected(refused.error));
}

void HeadNames::carry_out(const NameDirectory::Confirm& confirm, Instant now) {
  if (!links_.nodes().contains(confirm.node)) return on_node_gone(confirm.node, now);
  wire::Message message;
  write_request(message, kHasNameVerb, {{"actor", confirm.actor.value}}, confirm.request);
  links_.send(agent_peer(confirm.node), message);
}

void HeadNames::carry_out(const NameDirectory::Again& again, Instant now) {
  if (const auto asked = requests_.extract(again.request)) listener_.again(asked.mapped(), now);
}

}  // namespace paceline::cluster
