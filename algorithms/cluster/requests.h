#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

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
/// From the head to its agents: what there is to be seen of the node; the cluster ends.
inline constexpr const char* kNodeStatusVerb = "node_status";
inline constexpr const char* kDownVerb = "down";

/// `from`: who asks at the agent that sends it, where that is not the agent itself.
void write_request(wire::Message& message, const std::string& verb, const nlohmann::json& what, std::uint64_t id = 0,
                   const std::string& from = {});
/// What an agent that has done what request `id` asks for answers, to be sent the way that the request came.
void write_done_reply(wire::Message& message, std::uint64_t id, const nlohmann::json& answer);

/// What whoever waits for an answer to request `id` hears instead. `to`: who asked, at the agent that gets it.
transport::Frame failed_reply(std::uint64_t id, const std::string& to, const Error& error);

/// The same for any message of `peer`, with which something was wrong; nullopt: nobody waits for an answer to such a
/// one. Throws where it cannot be read.
std::optional<std::vector<transport::Frame>> refusal_of(const transport::Peer& peer,
                                                        const wire::Envelope::Reader& envelope, const Error& error);

}  // namespace paceline::cluster
