#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "cli/cluster_paths.h"
#include "runtime/base/result.h"

namespace paceline::cli {

inline constexpr std::int64_t kCpusMax = 4096;
/// So long the processes of a cluster may take to start.
inline constexpr auto kStartMax = std::chrono::seconds(15);

/// Of a cluster that is started.
struct ClusterSize {
  std::int64_t nodes = 1;
  std::int64_t cpus = 0;    ///< That each node has for tasks; 0: as many as the machine.
  std::int64_t memory = 0;  ///< Bytes that the workers of each may take; 0: what the machine has.
};

/// A cluster that this process started for itself and that ends with it, however this process ends: its processes hold
/// one end of a pipe, and this one the other.
class EmbeddedCluster {
 public:
  EmbeddedCluster(EmbeddedCluster&& other) noexcept;
  EmbeddedCluster& operator=(EmbeddedCluster&&) = delete;
  /// Ends its processes, frozen ones too, and removes its folder.
  ~EmbeddedCluster();

  const std::filesystem::path& directory() const { return directory_; }

 private:
  friend Result<EmbeddedCluster> start_embedded(const ClusterSize& size);
  EmbeddedCluster(std::filesystem::path directory, pid_t supervisor, OwnedFd lifeline)
      : directory_(std::move(directory)), supervisor_(supervisor), lifeline_(std::move(lifeline)) {}

  std::filesystem::path directory_;
  pid_t supervisor_ = -1;
  OwnedFd lifeline_;
};

/// Returns when the cluster takes requests. Errors carry the last lines of the cluster's log.
Result<EmbeddedCluster> start_embedded(const ClusterSize& size);

/// Where jobs run: a cluster that is up, or one of our own.
struct Place {
  std::filesystem::path directory;
  std::unique_ptr<EmbeddedCluster> own;
};
/// PACELINE_CLUSTER, or "default" if that is up, or a new one of `nodes` agents, `otherwise` if they are not given;
/// `invalid` where they are given and one is up.
Result<Place> find_place(std::optional<std::int64_t> nodes, std::int64_t otherwise = 1);

/// Starts a cluster that outlives this process; returns its folder when it takes requests.
Result<std::filesystem::path> start_detached(const std::string& name, const ClusterSize& size);

/// Asks its supervisor for so many agents more. `disconnected`: it was killed, and nobody starts any.
Result<void> start_more_nodes(const std::filesystem::path& directory, std::int32_t more);

/// Waits until no process of this cluster is left, then removes its folder. `timed_out`.
Result<void> wait_until_down(const std::filesystem::path& directory, const ClusterId& cluster,
                             std::chrono::milliseconds timeout);
/// Ends the processes of a cluster that does not answer: asks the supervisor, and kills who is left after 3 s.
void end_processes(const std::filesystem::path& directory, const ClusterId& cluster);

}  // namespace paceline::cli
