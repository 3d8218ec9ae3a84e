#include <cstdio>

#include "algorithms/cluster/client.h"
#include "cli/cluster_processes.h"
#include "cli/commands.h"
#include "runtime/base/contained.h"
#include "runtime/base/json.h"

using namespace paceline::cli;

namespace {

/// What a library throws at a file or an answer that is not as we write it ends the command with a line.
int contained_status(const Action& action) {
  int status = kFailed;
  const auto done = paceline::contained([&] { status = action(); });
  return done ? status : report(done.error());
}

}  // namespace

int main(int argc, char** argv) {
  // Started by `up` and `run`; their flags are no business of users.
  if (const auto status = run_cluster_process(argc, argv)) return *status;

  CommandLine line("paceline", "Train with actors that do not wait for the straggler.");
  line.version(version_text());
  Flags app = line.flags();
  app.footer("Begin with: paceline run examples/fashion_mnist.cpp --workers 4\nHelp on a command: paceline run --help");
  const std::pair<const char*, Action> actions[] = {
      {"run", add_run(app)},
      {"embed", add_embed(app)},
      {"options", add_options(app)},
      {"up", add_up(app, paceline::cluster::ask)},
      {"down", add_down(app, paceline::cluster::ask)},
      {"status", add_status(app, paceline::cluster::ask)},
      {"list", add_list(app, paceline::cluster::ask)},
      {"get", add_get(app, paceline::cluster::ask)},
      {"summary", add_summary(app, paceline::cluster::ask)},
      {"stack", add_stack(app, paceline::cluster::ask)},
      {"kill", add_kill(app, paceline::cluster::ask, paceline::cluster::find_actor, paceline::cluster::kill_actor)},
      {"cancel", add_cancel(app, paceline::cluster::cancel_task)},
      {"scale", add_scale(app, paceline::cluster::ask)},
      {"set", add_set(app, paceline::cluster::ask)},
      {"drain", add_drain(app, paceline::cluster::ask)},
      {"metrics", add_metrics(app, paceline::cluster::ask)},
      {"timeline", add_timeline(app, paceline::cluster::ask)},
      {"export", add_export(app)},
      {"logs", add_logs(app)},
      {"replay", add_replay(app)},
      {"report", add_report(app)},
      {"simulate", add_simulate(app)},
      {"reproduce", add_reproduce(app)},
      {"bench", add_bench(app)},
      {"completion", add_completion(app, line)},
      {"check", add_check(app)},
      {"clean", add_clean(app)},
      {"version", add_version(app)},
  };
  if (const auto status = line.parse(argc, argv)) return *status;
  for (const auto& [name, action] : actions) {
    if (line.command() == name) return contained_status(action);
  }
  return kUsage;
}
