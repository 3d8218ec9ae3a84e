#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/cluster/head_requests.h"
#include "runtime/base/result.h"
#include "runtime/transport/transport.h"
#include "runtime/wire/codec.h"

namespace paceline::cluster {

/// What the head is called by its agents.
inline const transport::Peer kHead = "head";

/// Requests of an agent to the head. Linked, not answered: it is connected to all agents of a lower number, and they
/// know it. Gone: a process of its node that may have started jobs. Cut off: another agent, and jobs that both had a
/// part in. Those of names: name_requests.h; of drivers: head.h.
inline constexpr const char* kLinkedVerb = "linked";
inline constexpr const char* kGoneVerb = "gone";
inline constexpr const char* kCutOffVerb = "cut_off";
inline constexpr const char* kLeftVerb = "left";
/// From the head to its agents: what there is to be seen of the node; the cluster ends.
inline constexpr const char* kNodeStatusVerb = "node_status";
inline constexpr const char* kDownVerb = "down";

void write_request(wire::Message& message, const HeadRequests::Request& request);
/// Of the agent, or the head, itself.
void write_request(wire::Message& message, const std::string& verb, const nlohmann::json& what, std::uint64_t id = 0);
/// To be sent the way that request `id` came. `to`: who asked, at the agent that gets it; empty: the agent, or the
/// head.
void write_reply(wire::Message& message, std::uint64_t id, const std::string& to, const Result<nlohmann::json>& answer);

/// What whoever waits for an answer to a message of `peer` hears, with which something was wrong; nullopt: nobody does.
/// Throws where it cannot be read.
std::optional<std::vector<transport::Frame>> refusal_of(const transport::Peer& peer,
                                                        const wire::Envelope::Reader& envelope, const Error& error);

}  // namespace paceline::cluster
