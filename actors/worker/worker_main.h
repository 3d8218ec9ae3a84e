#pragma once

#include <string>

#include "actors/client.h"
#include "runtime/base/ids.h"
#include "runtime/process/descriptor_channel.h"

namespace paceline::worker {

/// What code that runs in a worker may want to know of it.
struct Context {
  WorkerId worker;
  NodeId node;
  std::string agent_address;
  process::DescriptorChannel* agent = nullptr;  ///< These two live as long as the process.
  actors::Client* client = nullptr;
};

/// Of this process; programmer error outside of a worker (ask is_worker()).
Context& current();
bool is_worker();

/// The life of a forked worker: connects to the agent that PACELINE_AGENT names, says hello as "worker/ID", executes
/// what comes, on the calling thread. Ends the process (_exit) when the agent hangs up; never returns.
[[noreturn]] void worker_main(WorkerId worker, process::Fd agent_socket, actors::Client::TransportFactory transport);

}  // namespace paceline::worker
