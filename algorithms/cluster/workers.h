#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "actors/router/actor_router.h"
#include "algorithms/cluster/worker_output.h"
#include "runtime/base/ids.h"
#include "runtime/process/descriptor_message.h"

namespace paceline::cluster {

/// The workers of one node, as its agent reaches them: processes (worker_processes.h), or simulated. Owned by the
/// agent; whoever destroys it ends them all.
class Workers {
 public:
  struct Listener {
    struct End {
      std::string how;
      std::string log{};    ///< The path, if something of this worker's stands in it.
      bool failed = false;  ///< Of its own making (a crash, an exit status).
    };
    /// It ended, or could not be started.
    std::function<void(WorkerId, const End&)> ended;
    /// Came over its Unix socket.
    std::function<void(WorkerId, process::DescriptorMessage)> said;
    /// It is there, and somebody shows what it prints.
    std::function<void(WorkerOutput::Source)> prints{};
    /// It has ended, and its log is not yet another's. `ended` follows.
    std::function<void(WorkerId)> printed{};
  };

  virtual ~Workers() = default;

  virtual void fork(const actors::ActorRouter::Fork& fork) = 0;
  /// It has connected by itself, perhaps before its fork was told of here.
  virtual void on_connected(WorkerId worker, pid_t pid) = 0;
  /// SIGKILL; `ended` follows, with the first `reason` that is not empty as how.
  virtual void end(WorkerId worker, const std::string& reason) = 0;
  /// To what it has asked for under this number: what there is to say, or why not, over its Unix socket and without
  /// waiting.
  virtual void answer(WorkerId worker, std::uint64_t request, const Result<std::string>& body,
                      const std::vector<process::BorrowedFd>& fds) = 0;
  /// As in /proc/PID/stat: 'R', 'S', 'T' (stopped), 'Z' ...; 0 if there is no such process.
  virtual char state(WorkerId worker) const = 0;
  /// -1 while it is not forked.
  virtual pid_t pid(WorkerId worker) const = 0;
  /// Its path; empty: there is no such worker.
  virtual std::string log(WorkerId worker) const = 0;
  virtual std::size_t size() const = 0;
  /// Of each that has been forked: whose memory is to be looked at, and the bytes that it had from its fork server.
  struct MemorySource {
    WorkerId worker;
    pid_t pid = -1;
    std::uint64_t born_with = 0;
  };
  virtual std::vector<MemorySource> memory_sources() const = 0;
};

}  // namespace paceline::cluster
