#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "algorithms/cluster/processes.h"
#include "cli/cluster.h"
#include "cli/commands.h"
#include "cli/simulate_options.h"
#include "runtime/base/json.h"

namespace paceline::cli {
namespace {

constexpr double kMemoryMin = 64 << 20;
constexpr auto kLookEvery = std::chrono::milliseconds(20);

/// Bytes of --memory; 0: it is not given.
Result<std::int64_t> memory_of(const std::string& text) {
  if (text.empty()) return 0;
  const auto bytes = parse_size(text);
  if (!bytes || *bytes < kMemoryMin)
    return fail(ErrorKind::invalid, "--memory " + text + ": give a size such as 500MB or 4GiB, 64MiB at least");
  return static_cast<std::int64_t>(*bytes);
}

struct Given {
  std::string name{};
  std::optional<std::int64_t> nodes{};
  std::optional<std::int64_t> add{};
  std::optional<std::int64_t> cpus{};
  std::string memory{};
  bool json = false;
};

int print(const Given& given, const std::string& name, std::int64_t nodes, const std::string& directory,
          const std::string& text) {
  const nlohmann::json up{{"name", name}, {"nodes", nodes}, {"directory", directory}};
  std::puts(given.json ? json_text(up).c_str() : text.c_str());
  return kDone;
}

std::string nodes_in_words(std::int64_t nodes) { return std::to_string(nodes) + (nodes == 1 ? " node" : " nodes"); }

int start(const Given& given, std::int64_t memory) {
  ClusterSize size{given.nodes.value_or(1), given.cpus.value_or(0), memory};
  const std::string name = given.name.empty() ? "default" : given.name;
  const auto directory = start_detached(name, size);
  if (!directory) return report(directory.error());
  return print(given, name, size.nodes, directory->string(),
               "cluster '" + name + "' is up: " + nodes_in_words(size.nodes));
}

/// How many it has; nullopt: not all that it is to have are there.
Result<std::optional<std::int64_t>> nodes_of(const std::filesystem::path& directory, const Ask& ask) {
  const auto status = ask(directory, "status", nlohmann::json::object());
  if (!status) return tl::unexpected(status.error());
  const auto expected = status->value("nodes_expected", std::int64_t{0});
  const auto there = static_cast<std::int64_t>(status->value("nodes", nlohmann::json::array()).size());
  return there == expected ? std::optional(there) : std::nullopt;
}

int add(const Given& given, const Ask& ask) {
  const auto directory = find_any_cluster(given.name);
  if (!directory) return report(directory.error());
  const auto has = nodes_of(*directory, ask);
  if (!has) return report(has.error());
  const std::string name = directory->filename().string();
  if (!*has)
    return report({ErrorKind::infeasible, "not all nodes of cluster '" + name +
                                              "' are there: `paceline status` says "
                                              "which; wait until they are"});
  const std::int64_t wanted = **has + *given.add;
  if (wanted > cluster::kNodesMax)
    return report({ErrorKind::invalid, "--add " + std::to_string(*given.add) + ": the cluster has " +
                                           nodes_in_words(**has) + ", and can have " +
                                           std::to_string(cluster::kNodesMax)});
  if (const auto asked = start_more_nodes(*directory, static_cast<std::int32_t>(*given.add)); !asked)
    return report(asked.error());
  const auto deadline = std::chrono::steady_clock::now() + kStartMax;
  while (true) {
    const auto now = nodes_of(*directory, ask);
    if (!now && now.error().kind != ErrorKind::disconnected) return report(now.error());
    if (now && *now && **now >= wanted)
      return print(given, name, **now, directory->string(), "cluster '" + name + "' has " + nodes_in_words(**now));
    if (std::chrono::steady_clock::now() >= deadline)
      return report({ErrorKind::timed_out, "the new nodes of cluster '" + name +
                                               "' are not there after 15 s: look at " +
                                               (*directory / "cluster.log").string()});
    std::this_thread::sleep_for(kLookEvery);
  }
}

}  // namespace

Action add_up(Flags app, Ask ask) {
  auto flags = std::make_shared<Given>();
  Flags command = app.command("up", "Start a cluster on this machine that stays until `paceline down`");
  command.add("--name", &flags->name, "so that several can be up (default: default); PACELINE_CLUSTER selects one");
  command.add("--nodes", &flags->nodes, "node agents (default: 1)").between(1, cluster::kNodesMax);
  command
      .add("--add", &flags->add,
           "so many node agents more for a cluster that is up, like the others; jobs that want more workers get them "
           "there")
      .between(1, cluster::kNodesMax);
  command.add("--cpus", &flags->cpus, "that each node has for tasks; else the machine's").between(1, kCpusMax);
  command.add("--memory", &flags->memory, "that the workers of each node may take, such as 4GiB; else the machine's");
  command.add("--json", &flags->json, "a JSON object: name, nodes, directory");
  return [flags, ask = std::move(ask)] {
    if (flags->add && (flags->nodes || flags->cpus || !flags->memory.empty()))
      return report({ErrorKind::invalid,
                     "--add is for a cluster that is up, with the cpus and the memory that it was "
                     "started with: leave --nodes, --cpus and --memory out"});
    const auto memory = memory_of(flags->memory);
    if (!memory) return report(memory.error());
    return flags->add ? add(*flags, ask) : start(*flags, *memory);
  };
}

}  // namespace paceline::cli
