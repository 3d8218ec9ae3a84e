#pragma once

#include <string>
#include <utility>

#include "actors/tool.h"
#include "runtime/base/result.h"

namespace paceline::actors {

/// The cluster of a driver that was started without one: `paceline embed` names the one that is up, or starts one that
/// ends when we do, however we end (it waits for the end of a pipe).
class EmbeddedCluster {
 public:
  /// `not_found` where there is no `paceline` program, or no cluster.
  static Result<EmbeddedCluster> start(const std::string& executable);

  const std::string& directory() const { return directory_; }

 private:
  EmbeddedCluster(Tool tool, std::string directory) : tool_(std::move(tool)), directory_(std::move(directory)) {}

  Tool tool_;
  std::string directory_;
};

}  // namespace paceline::actors
