#include <cstdio>
#include <string_view>

#include "algorithms/cluster/client.h"
#include "algorithms/cluster/daemon.h"
#include "cli/commands.h"
#include "runtime/base/json.h"

using namespace paceline::cli;

namespace {

int run_daemon(int argc, char** argv) {
  paceline::cluster::DaemonOptions options;
  CommandLine line("paceline daemon", "A cluster's process; started by `paceline up` and `paceline run`");
  Flags app = line.flags();
  app.add("--directory", &options.directory).required();
  app.add("--name", &options.name);
  app.add("--nodes", &options.nodes).between(1, 1024);
  app.add("--node", &options.node).between(0, 1023);
  if (const auto status = line.parse(argc, argv)) return *status;
  const auto done = paceline::cluster::run_daemon(options);
  return done ? kDone : report(done.error());
}

}  // namespace

int main(int argc, char** argv) {
  // Started by `up` and `run`; its flags are no business of users.
  if (argc > 1 && std::string_view(argv[1]) == "daemon") return run_daemon(argc - 1, argv + 1);

  CommandLine line("paceline", "Train with actors that do not wait for the straggler.");
  line.version(version_text());
  Flags app = line.flags();
  app.footer("Begin with: paceline run examples/fashion_mnist.cpp --workers 4\nHelp on a command: paceline run --help");
  const std::pair<const char*, Action> actions[] = {
      {"run", add_run(app)},
      {"embed", add_embed(app)},
      {"options", add_options(app)},
      {"up", add_up(app)},
      {"down", add_down(app, paceline::cluster::ask)},
      {"status", add_status(app, paceline::cluster::ask)},
      {"metrics", add_metrics(app, paceline::cluster::ask)},
      {"export", add_export(app)},
      {"logs", add_logs(app)},
      {"replay", add_replay(app)},
      {"report", add_report(app)},
      {"simulate", add_simulate(app)},
      {"reproduce", add_reproduce(app)},
      {"completion", add_completion(app, line)},
      {"check", add_check(app)},
      {"clean", add_clean(app)},
      {"version", add_version(app)},
  };
  if (const auto status = line.parse(argc, argv)) return *status;
  for (const auto& [name, action] : actions) {
    if (line.command() == name) return action();
  }
  return kUsage;
}
