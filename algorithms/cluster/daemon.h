#pragma once

#include <cstdint>
#include <string>

#include "runtime/base/result.h"

namespace paceline::cluster {

struct DaemonOptions {
  std::string directory;   ///< The cluster's runtime directory (0700, ours).
  std::string name;        ///< The cluster's name, for people.
  std::int32_t nodes = 1;  ///< Agents of the cluster; all on this machine.
  std::int32_t node = 0;   ///< 0: head and first agent in one process, which starts the other agents.
};

/// A cluster's process, from start to end. Node 0 writes DIRECTORY/keys (0600) and, once every agent has registered,
/// DIRECTORY/ready. Returns after SIGTERM, SIGINT or a `down` request, with all workers ended and, on node 0, the
/// directory emptied.
Result<void> run_daemon(const DaemonOptions& options);

}  // namespace paceline::cluster
