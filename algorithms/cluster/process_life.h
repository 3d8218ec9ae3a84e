#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "algorithms/cluster/processes.h"
#include "runtime/base/event_loop.h"
#include "runtime/base/result.h"
#include "runtime/process/fd.h"
#include "runtime/transport/transport.h"
#include "runtime/transport/zmq/keys.h"

namespace paceline::cluster {

/// What all processes of a cluster have in common: the locks that say that they live, and what tells them to end. Made
/// before any thread. Owned by the control thread.
class ProcessLife {
 public:
  /// `name`: "supervisor", "head", "agent-3"; `supervises`: what only a supervisor is told is, too. `invalid` if there
  /// is one already.
  static Result<ProcessLife> begin(const ProcessOptions& options, const std::string& name, bool supervises = false);

  struct Told {
    std::function<void(int signal)> stop;            ///< To end; 0: who started it is gone.
    std::function<void()> child{};                   ///< After a SIGCHLD.
    std::function<void(std::int32_t)> more_nodes{};  ///< So many are wanted (more_nodes_signal()).
  };
  /// Calls these from the loop.
  Result<void> watch(EventLoop& loop, Told told);
  /// The process that started this one is gone.
  bool orphaned() const;
  /// What a child is to inherit; -1: there is none.
  int lock() const { return lock_.get(); }
  int lifeline() const { return lifeline_.get(); }

 private:
  process::Fd lock_, lifeline_, own_, signals_;
  int parent_ = 0;
};

struct Endpoint {
  std::unique_ptr<transport::Transport> transport;
  std::string address;
};
/// An endpoint called `name` that listens at `address`, for the processes of a node.
Result<Endpoint> open_endpoint(const std::string& name, const std::string& address);
/// For links between agents and head (runtime/link/). `keys`: for tcp. `invalid` also if PACELINE_LEASE is nonsense.
Result<Endpoint> open_link_endpoint(const std::string& name, const std::string& address,
                                    std::optional<transport::ClusterKeys> keys);

/// Where the head listens for the agents of its own host.
std::string head_address(const std::string& directory);
std::string keys_path(const std::string& directory);

}  // namespace paceline::cluster
