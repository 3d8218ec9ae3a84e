#include <cstdint>
#include <cstdio>
#include <memory>

#include "cli/cluster.h"
#include "cli/commands.h"

namespace paceline::cli {

Action add_up(CLI::App& app) {
  struct Flags {
    std::string name = "default";
    std::int64_t nodes = 1;
  };
  auto flags = std::make_shared<Flags>();
  auto* command = app.add_subcommand("up", "Start a cluster on this machine that stays until `paceline down`");
  command->add_option("--name", flags->name, "so that several can be up; PACELINE_CLUSTER selects one")
      ->capture_default_str();
  command->add_option("--nodes", flags->nodes, "node agents")->capture_default_str()->check(CLI::Range(1, 64));
  return [flags] {
    const auto directory = start_detached(flags->name, flags->nodes);
    if (!directory) return report(directory.error());
    std::printf("cluster '%s' is up: %lld node%s\n", flags->name.c_str(), static_cast<long long>(flags->nodes),
                flags->nodes == 1 ? "" : "s");
    return kDone;
  };
}

}  // namespace paceline::cli
