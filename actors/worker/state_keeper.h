#pragma once

#include "actors/worker/durable_actor.h"

namespace paceline::worker {

/// The agent, at the other end of a worker's Unix socket (algorithms/cluster/kept_states.h). Blocks until it has
/// answered.
///
///   {"kind": "state"} -> {"kind": "state"} [descriptor, if there is one]
///   {"kind": "keep"} [descriptor] -> {"kind": "kept"}                             or {"error": text}
StateKeeper keep_at_agent(process::BorrowedFd agent_socket);

}  // namespace paceline::worker
