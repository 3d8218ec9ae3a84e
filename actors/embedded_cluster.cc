#include "actors/embedded_cluster.h"

namespace paceline::actors {

Result<EmbeddedCluster> EmbeddedCluster::start(const std::string& executable) {
  auto tool = Tool::start(executable, {"embed"});
  if (!tool)
    return fail(tool.error().kind, "no cluster, and no `paceline` to start one (" + tool.error().text +
                                       "): put it in PATH, or run this program with `paceline run`");
  std::string directory = tool->read_line();
  if (directory.empty()) return fail(ErrorKind::not_found, "no cluster to work with: the reason is above");
  return EmbeddedCluster(*std::move(tool), std::move(directory));
}

}  // namespace paceline::actors
