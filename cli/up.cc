#include <cstdint>
#include <cstdio>
#include <memory>

#include "cli/cluster.h"
#include "cli/commands.h"
#include "runtime/base/json.h"

namespace paceline::cli {

Action add_up(Flags app) {
  struct Given {
    std::string name = "default";
    std::int64_t nodes = 1;
    bool json = false;
  };
  auto flags = std::make_shared<Given>();
  Flags command = app.command("up", "Start a cluster on this machine that stays until `paceline down`");
  command.add("--name", &flags->name, "so that several can be up; PACELINE_CLUSTER selects one").shows_default();
  command.add("--nodes", &flags->nodes, "node agents").shows_default().between(1, 64);
  command.add("--json", &flags->json, "a JSON object: name, nodes, directory");
  return [flags] {
    const auto directory = start_detached(flags->name, flags->nodes);
    if (!directory) return report(directory.error());
    if (flags->json) {
      const nlohmann::json up{{"name", flags->name}, {"nodes", flags->nodes}, {"directory", directory->string()}};
      std::puts(json_text(up).c_str());
      return kDone;
    }
    std::printf("cluster '%s' is up: %lld node%s\n", flags->name.c_str(), static_cast<long long>(flags->nodes),
                flags->nodes == 1 ? "" : "s");
    return kDone;
  };
}

}  // namespace paceline::cli
