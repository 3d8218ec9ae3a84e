#include <cstdio>
#include <memory>

#include "cli/cluster_paths.h"
#include "cli/commands.h"
#include "runtime/base/json.h"

namespace paceline::cli {

Action add_cancel(Flags app, CancelTask cancel_task) {
  struct Given {
    std::int64_t task = 0;
    bool force = false;
    std::string name;
    bool json = false;
  };
  auto flags = std::make_shared<Given>();
  Flags command = app.command("cancel", "Cancel a task, or a call of an actor, by its id");
  command.add("task", &flags->task, "its id, as errors and `paceline list tasks --json` name it").required();
  command.add("--force", &flags->force, "if it runs its worker ends; not of calls");
  command.add("--name", &flags->name, std::string("of the cluster; ") + kAnyCluster);
  command.add("--json", &flags->json, "a JSON object: task, owner");
  return [flags, cancel_task = std::move(cancel_task)] {
    const auto directory = find_any_cluster(flags->name);
    if (!directory) return report(directory.error());
    const auto owner = cancel_task(*directory, TaskId(static_cast<std::uint64_t>(flags->task)), flags->force);
    if (!owner) return report(owner.error());
    const auto task = std::to_string(flags->task);
    std::puts(flags->json ? json_text({{"task", task}, {"owner", *owner}}).c_str()
                          : ("task " + task + " is cancelled if it is not over: " + *owner + " has been told").c_str());
    return kDone;
  };
}

}  // namespace paceline::cli
