#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"

namespace paceline::cli {

/// Where this user's clusters keep their sockets, one folder a cluster: ROOT/NAME with
///   lock    flock'd by the cluster's processes while they live: a folder whose lock is free is stale
///   ready   appears when the cluster takes requests
///   supervisor.pid, head.pid, agent-N.pid   each flock'd by its process, whose number stands in it
///   cluster.log
/// ROOT is $XDG_RUNTIME_DIR/paceline, or /tmp/paceline-UID where there is no such folder of ours.
struct RuntimeRoot {
  std::filesystem::path path;

  /// Creates it with mode 0700. `invalid` if somebody else owns it or others may enter it.
  static Result<RuntimeRoot> open();
  /// The same with the environment given; for tests.
  static Result<RuntimeRoot> open_at(std::filesystem::path path, uid_t user);
};

/// A file descriptor that is closed at the end.
class OwnedFd {
 public:
  explicit OwnedFd(int fd = -1) : fd_(fd) {}
  OwnedFd(OwnedFd&& other) noexcept;
  OwnedFd& operator=(OwnedFd&& other) noexcept;
  ~OwnedFd();
  int get() const { return fd_; }

 private:
  int fd_;
};

/// 1 to 40 of a-z, 0-9, - and _.
Result<void> check_cluster_name(std::string_view name);

/// Makes the folder of a new cluster and takes its lock: to be inherited by the supervisor, so that it is held without
/// a gap. `invalid` if a cluster of that name runs.
struct ClaimedDirectory {
  std::filesystem::path path;
  OwnedFd lock;
};
Result<ClaimedDirectory> claim_directory(const RuntimeRoot& root, const std::string& name);

/// Whether a process of a cluster holds the folder's lock.
bool is_running(const std::filesystem::path& directory);
/// Which cluster this is, as long as any of its processes lives: another one of the same name has another lock.
struct ClusterId {
  dev_t device = 0;
  ino_t lock = 0;
  bool operator==(const ClusterId&) const = default;
};
std::optional<ClusterId> running_cluster(const std::filesystem::path& directory);
/// Its processes that live, the supervisor first.
std::vector<pid_t> processes_of(const std::filesystem::path& directory);
std::optional<pid_t> supervisor_of(const std::filesystem::path& directory);
/// Removes the folders that no process holds; returns their names.
std::vector<std::string> sweep_stale(const RuntimeRoot& root);
/// Names of the running clusters, sorted.
std::vector<std::string> running_clusters(const RuntimeRoot& root);

/// The folder of the cluster that a command means: `named` (may be empty), else PACELINE_CLUSTER (a name or a folder),
/// else "default". `not_found` if it does not run; the text lists those that do.
Result<std::filesystem::path> find_cluster(const RuntimeRoot& root, const std::string& named);
/// The same, or else the only one that is up.
Result<std::filesystem::path> find_any_cluster(const RuntimeRoot& root, const std::string& named);
/// The same of this user's clusters, once what the dead have left is gone.
Result<std::filesystem::path> find_any_cluster(const std::string& named);
/// Which one that is, for the help of --name.
inline constexpr const char* kAnyCluster =
    "default: what PACELINE_CLUSTER names, else 'default', else the only one that is up";

}  // namespace paceline::cli
