#include "algorithms/cluster/name_requests.h"

#include "runtime/base/json.h"

namespace paceline::cluster {

using nlohmann::json;

json to_json(const actors::NameClaim& claim) {
  return {{"actor", claim.actor.value},
          {"name", claim.name},
          {"type", claim.type},
          {"owner", claim.owner},
          {"claims", claim.rule.claims},
          {"get_if_exists", claim.rule.get_if_exists},
          {"detached", claim.rule.detached},
          {"after", claim.rule.after.value}};
}

actors::NameClaim claim_from(const json& said) {
  return {ActorId{said.value("actor", std::uint64_t{0})},
          said.value("name", ""),
          said.value("type", ""),
          said.value("owner", ""),
          {said.value("claims", false), said.value("get_if_exists", false), said.value("detached", false),
           ActorId{said.value("after", std::uint64_t{0})}}};
}

json to_json(const std::vector<actors::NameClaim>& names) {
  json list = json::array();
  for (const auto& claim : names) list.push_back(to_json(claim));
  return {{"names", std::move(list)}};
}

std::vector<actors::NameClaim> names_from(const json& said) {
  std::vector<actors::NameClaim> names;
  for (const auto& claim : said.value("names", json::array())) names.push_back(claim_from(claim));
  return names;
}

}  // namespace paceline::cluster
