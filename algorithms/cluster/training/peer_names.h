#pragma once

#include <string>

#include "runtime/base/ids.h"
#include "runtime/transport/transport.h"

namespace paceline::cluster {

/// How the processes of a cluster are called at an agent's endpoints: "head", "agent/3", "worker/17", "session/17",
/// "driver/4711".
std::string agent_peer(NodeId node);
/// -1: none.
NodeId node_of_peer(const transport::Peer& peer);
bool is_session(const transport::Peer& peer);
/// Of a worker or its session; 0: none.
WorkerId worker_of(const transport::Peer& peer);

}  // namespace paceline::cluster
