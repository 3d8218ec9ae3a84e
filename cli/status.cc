#include <cstdio>
#include <memory>

#include "cli/cluster_paths.h"
#include "cli/commands.h"
#include "cli/status_view.h"
#include "runtime/base/json.h"

namespace paceline::cli {

Action add_status(Flags app, Ask ask) {
  struct Given {
    std::string name;
    bool json = false;
  };
  auto flags = std::make_shared<Given>();
  Flags command = app.command("status", "Show a cluster's nodes and jobs, and who waits for whom");
  command.add("--name", &flags->name,
              "default: what PACELINE_CLUSTER names, else 'default', else the only one that is up");
  command.add("--json", &flags->json, "the answer as JSON");
  return [flags, ask = std::move(ask)] {
    const auto root = RuntimeRoot::open();
    if (!root) return report(root.error());
    sweep_stale(*root);
    auto directory = find_cluster(*root, flags->name);
    const auto running = running_clusters(*root);
    const bool asked_for_one = !flags->name.empty() || std::getenv("PACELINE_CLUSTER");
    if (!directory && !asked_for_one && running.size() == 1) directory = root->path / running.front();
    if (!directory) return report(directory.error());
    const auto answer = ask(*directory, "status", nlohmann::json::object());
    if (!answer) return report(answer.error());
    std::fputs((flags->json ? answer->dump() + "\n" : status_text(*answer)).c_str(), stdout);
    return kDone;
  };
}

}  // namespace paceline::cli
