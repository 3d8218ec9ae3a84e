#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "actors/named.h"

namespace paceline::cluster {

/// What agents and the head say to each other about the names of actors, as requests. From an agent:
///   claim    an actor of its is to have a name -> {asked, name, actor: who has it}; `invalid`
///   unclaim  {actor, name}: it does not have it any more; not answered
///   names    {names}: all that actors of its have; before its hello, not answered
/// from the head:
///   has_name {actor} -> {has}
///   lost_name {actor}: another one has its name; not answered
inline constexpr const char* kClaimVerb = "claim";
inline constexpr const char* kUnclaimVerb = "unclaim";
inline constexpr const char* kNamesVerb = "names";
inline constexpr const char* kHasNameVerb = "has_name";
inline constexpr const char* kLostNameVerb = "lost_name";

nlohmann::json to_json(const actors::NameClaim& claim);
/// What is not there is empty; throws where something is no JSON of ours.
actors::NameClaim claim_from(const nlohmann::json& json);
nlohmann::json to_json(const std::vector<actors::NameClaim>& names);
std::vector<actors::NameClaim> names_from(const nlohmann::json& json);

}  // namespace paceline::cluster
