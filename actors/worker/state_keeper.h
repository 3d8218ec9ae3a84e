#pragma once

#include "actors/worker/durable_actor.h"
#include "runtime/process/descriptor_channel.h"

namespace paceline::worker {

/// The agent, at the other end of a worker's Unix socket (algorithms/cluster/kept_states.h). Blocks until it has
/// answered.
StateKeeper keep_at_agent(process::DescriptorChannel& agent);

}  // namespace paceline::worker
