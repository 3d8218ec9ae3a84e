#include <cstdio>
#include <memory>

#include "cli/cluster.h"
#include "cli/commands.h"
#include "runtime/base/json.h"

namespace paceline::cli {

Action add_down(Flags app, Ask ask) {
  auto name = std::make_shared<std::string>();
  Flags command = app.command("down", "Stop a cluster, its jobs and its workers");
  command.add("--name", name.get(), "default: what PACELINE_CLUSTER names, else 'default'");
  return [name, ask = std::move(ask)] {
    const auto root = RuntimeRoot::open();
    if (!root) return report(root.error());
    sweep_stale(*root);
    const auto directory = find_cluster(*root, *name);
    if (!directory) return report(directory.error());
    const auto answer = ask(*directory, "down", nlohmann::json::object());
    // It may be gone before its answer is: what counts is that it ends.
    if (!answer && answer.error().kind != ErrorKind::disconnected) return report(answer.error());
    const auto ended = wait_until_down(*directory, std::chrono::seconds(10));
    if (!ended) return report(ended.error());
    std::printf("cluster '%s' is down\n", directory->filename().c_str());
    return kDone;
  };
}

}  // namespace paceline::cli
