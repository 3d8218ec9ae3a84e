#include "cli/cluster_processes.h"

#include <limits>
#include <string>
#include <string_view>

#include "algorithms/cluster/processes.h"
#include "cli/cluster.h"
#include "cli/commands.h"

namespace paceline::cli {
namespace {

int ended(const Result<void>& done) { return done ? kDone : report(done.error()); }

int head(const cluster::ProcessOptions& options) {
  const auto done = cluster::run_head(options);
  if (!done) return report(done.error());
  return *done ? cluster::kClusterEnds : kDone;
}

}  // namespace

std::optional<int> run_cluster_process(int argc, char** argv) {
  const std::string_view which = argc > 1 ? argv[1] : "";
  if (which != "supervise" && which != "head" && which != "agent") return std::nullopt;
  cluster::ProcessOptions options;
  CommandLine line("paceline " + std::string(which),
                   "A process of a cluster, which `paceline up` and `paceline run` start");
  Flags app = line.flags();
  app.add("--directory", &options.directory).required();
  app.add("--name", &options.name);
  app.add("--nodes", &options.nodes).between(1, 1024);
  app.add("--node", &options.node).between(0, 1023);
  app.add("--cpus", &options.cpus).between(0, kCpusMax);
  app.add("--memory", &options.memory).between(0, std::numeric_limits<std::int64_t>::max());
  if (const auto status = line.parse(argc - 1, argv + 1)) return *status;
  if (which == "head") return head(options);
  return ended(which == "agent" ? cluster::run_agent(options) : cluster::run_supervisor(options));
}

}  // namespace paceline::cli
