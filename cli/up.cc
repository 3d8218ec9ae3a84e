#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "cli/cluster.h"
#include "cli/commands.h"
#include "cli/simulate_options.h"
#include "runtime/base/json.h"

namespace paceline::cli {
namespace {

constexpr double kMemoryMin = 64 << 20;

/// Bytes of --memory; 0: it is not given.
Result<std::int64_t> memory_of(const std::string& text) {
  if (text.empty()) return 0;
  const auto bytes = parse_size(text);
  if (!bytes || *bytes < kMemoryMin)
    return fail(ErrorKind::invalid, "--memory " + text + ": give a size such as 500MB or 4GiB, 64MiB at least");
  return static_cast<std::int64_t>(*bytes);
}

}  // namespace

Action add_up(Flags app) {
  struct Given {
    std::string name = "default";
    ClusterSize size{};
    std::optional<std::int64_t> cpus{};
    std::string memory{};
    bool json = false;
  };
  auto flags = std::make_shared<Given>();
  Flags command = app.command("up", "Start a cluster on this machine that stays until `paceline down`");
  command.add("--name", &flags->name, "so that several can be up; PACELINE_CLUSTER selects one").shows_default();
  command.add("--nodes", &flags->size.nodes, "node agents").shows_default().between(1, 64);
  command.add("--cpus", &flags->cpus, "that each node has for tasks; else the machine's").between(1, kCpusMax);
  command.add("--memory", &flags->memory, "that the workers of each node may take, such as 4GiB; else the machine's");
  command.add("--json", &flags->json, "a JSON object: name, nodes, directory");
  return [flags] {
    const auto memory = memory_of(flags->memory);
    if (!memory) return report(memory.error());
    ClusterSize size = flags->size;
    size.cpus = flags->cpus.value_or(0);
    size.memory = *memory;
    const auto directory = start_detached(flags->name, size);
    if (!directory) return report(directory.error());
    if (flags->json) {
      const nlohmann::json up{{"name", flags->name}, {"nodes", size.nodes}, {"directory", directory->string()}};
      std::puts(json_text(up).c_str());
      return kDone;
    }
    std::printf("cluster '%s' is up: %lld node%s\n", flags->name.c_str(), static_cast<long long>(size.nodes),
                size.nodes == 1 ? "" : "s");
    return kDone;
  };
}

}  // namespace paceline::cli
