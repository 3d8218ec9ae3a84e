#include <cstdio>
#include <memory>

#include "cli/cluster_paths.h"
#include "cli/commands.h"
#include "runtime/base/json.h"

namespace paceline::cli {

Action add_kill(Flags app, KillActor kill_actor) {
  struct Given {
    std::string actor;
    std::string name;
    bool json = false;
  };
  auto flags = std::make_shared<Given>();
  Flags command = app.command("kill", "End an actor, by its name or its id");
  command.add("actor", &flags->actor, "its name, or its id as `paceline list actors` shows it").required();
  command.add("--name", &flags->name, std::string("of the cluster; ") + kAnyCluster);
  command.add("--json", &flags->json, "a JSON object: id");
  return [flags, kill_actor = std::move(kill_actor)] {
    const auto directory = find_any_cluster(flags->name);
    if (!directory) return report(directory.error());
    const auto killed = kill_actor(*directory, flags->actor);
    if (!killed) return report(killed.error());
    std::puts(flags->json ? json_text({{"id", *killed}}).c_str() : ("actor " + *killed + " has ended").c_str());
    return kDone;
  };
}

}  // namespace paceline::cli
