#pragma once

#include <cstdint>
#include <string>

#include "runtime/base/result.h"

namespace paceline::cluster {

/// The processes of a cluster's host:
///
///   supervisor ── head
///             ├── agent 0 ── fork servers ── workers
///             └── agent 1 ...
///
/// Each holds the lock of the cluster's directory while it lives (the directory of a cluster is stale when nobody does)
/// and one of its own, DIRECTORY/supervisor.pid, head.pid or agent-N.pid, in which its number stands: whoever has that
/// lock is the only one of its name. Any of them may be killed. The supervisor starts head and agents again; a head
/// that is started again hears from the agents what runs, and an agent takes its workers with it. Without a supervisor
/// all goes on, but nobody is started again; an agent that has neither head nor supervisor ends after 30 s.
struct ProcessOptions {
  std::string directory;    ///< The cluster's runtime directory (0700, ours).
  std::string name;         ///< The cluster's name, for people.
  std::int32_t nodes = 1;   ///< Agents of the cluster; all on this machine.
  std::int32_t node = 0;    ///< Of an agent: which.
  std::int64_t cpus = 0;    ///< That each node has for tasks; 0: as many as the machine.
  std::int64_t memory = 0;  ///< Bytes that the workers of each may take; 0: what the machine has.
};

/// Descriptors that a process is started with, by number: the locked lock file, and the end of a pipe whose other end
/// whoever started the cluster holds, if the cluster is to end with it.
inline constexpr const char* kLockVariable = "PACELINE_LOCK_FD";
inline constexpr const char* kLifelineVariable = "PACELINE_LIFELINE_FD";

/// From start to end: SIGTERM, SIGINT, the end of the lifeline, or the head's word that somebody asked for the
/// cluster's end. Writes DIRECTORY/keys (0600), and empties the directory at its end. What it does with its children
/// stands on standard error.
Result<void> run_supervisor(const ProcessOptions& options);
/// With it a supervisor is asked for so many agents more as its value says (sigqueue). Not for more than kNodesMax in
/// all.
int more_nodes_signal();
inline constexpr std::int32_t kNodesMax = 64;

/// Writes DIRECTORY/ready when every agent is registered. True: somebody asked for the cluster's end.
Result<bool> run_head(const ProcessOptions& options);
/// Exit status of a head that says so.
inline constexpr int kClusterEnds = 10;

Result<void> run_agent(const ProcessOptions& options);

}  // namespace paceline::cluster
