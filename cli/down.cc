#include <cstdio>
#include <memory>

#include "cli/cluster.h"
#include "cli/commands.h"
#include "runtime/base/json.h"

namespace paceline::cli {

Action add_down(Flags app, Ask ask) {
  struct Given {
    std::string name;
    bool json = false;
  };
  auto flags = std::make_shared<Given>();
  Flags command = app.command("down", "Stop a cluster, its jobs and its workers");
  command.add("--name", &flags->name, "default: what PACELINE_CLUSTER names, else 'default'");
  command.add("--json", &flags->json, "a JSON object: name");
  return [flags, ask = std::move(ask)] {
    const auto root = RuntimeRoot::open();
    if (!root) return report(root.error());
    sweep_stale(*root);
    const auto directory = find_cluster(*root, flags->name);
    if (!directory) return report(directory.error());
    const auto cluster = running_cluster(*directory);
    if (!cluster) return report({ErrorKind::not_found, "the cluster in " + directory->string() + " has just ended"});
    const auto answer = ask(*directory, "down", nlohmann::json::object());
    // It may be gone before its answer is: what counts is that it ends.
    if (!answer && answer.error().kind != ErrorKind::disconnected) {
      std::fprintf(stderr, "paceline: the cluster does not answer (%s): its processes are ended\n",
                   answer.error().text.c_str());
      end_processes(*directory, *cluster);
    }
    const auto ended = wait_until_down(*directory, *cluster, std::chrono::seconds(10));
    if (!ended) return report(ended.error());
    const std::string name = directory->filename();
    std::puts(flags->json ? json_text({{"name", name}}).c_str() : ("cluster '" + name + "' is down").c_str());
    return kDone;
  };
}

}  // namespace paceline::cli
