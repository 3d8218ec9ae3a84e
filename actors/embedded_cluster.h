#pragma once

#include <sys/types.h>

#include <string>

#include "runtime/base/result.h"

namespace paceline::actors {

/// The cluster of a driver that was started without one: `paceline embed` names the one that is up, or starts one that
/// ends when we do, however we end (it waits for the end of a pipe).
class EmbeddedCluster {
 public:
  /// `not_found` where there is no `paceline` program: beside `executable` (ours), in PATH, or where it was installed.
  /// What it has to say goes to our stderr.
  static Result<EmbeddedCluster> start(const std::string& executable);

  EmbeddedCluster(EmbeddedCluster&& other) noexcept;
  EmbeddedCluster& operator=(EmbeddedCluster&&) = delete;
  /// Ends it, and waits for that.
  ~EmbeddedCluster();

  const std::string& directory() const { return directory_; }

 private:
  EmbeddedCluster(pid_t tool, int pipe) : tool_(tool), pipe_(pipe) {}

  pid_t tool_ = -1;
  int pipe_ = -1;  ///< The tool's stdin.
  std::string directory_;
};

}  // namespace paceline::actors
