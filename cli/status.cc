#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>

#include "cli/cluster_paths.h"
#include "cli/commands.h"
#include "cli/status_view.h"
#include "runtime/base/json.h"

namespace paceline::cli {
namespace {

constexpr const char* kClear = "\x1b[H\x1b[2J";  // To the top left, and nothing below.

}  // namespace

Action add_status(Flags app, Ask ask) {
  struct Given {
    std::string name;
    bool json = false;
    bool watch = false;
  };
  auto flags = std::make_shared<Given>();
  Flags command = app.command("status", "Show a cluster's nodes and jobs, and who waits for whom");
  command.add("--name", &flags->name, kAnyCluster);
  command.add("--json", &flags->json, "the answer as JSON");
  command.add("--watch,-w", &flags->watch, "again every second, until Ctrl-C or the cluster's end");
  return [flags, ask = std::move(ask)] {
    const auto directory = find_any_cluster(flags->name);
    if (!directory) return report(directory.error());
    const bool redraws = flags->watch && !flags->json && ::isatty(STDOUT_FILENO) == 1;
    for (bool first = true;; first = false) {
      const auto answer = ask(*directory, "status", {{"actors", "detached"}, {"workers", "waiting"}, {"tasks", "all"}});
      if (!answer) return first ? report(answer.error()) : kDone;
      const std::string text = flags->json ? json_text(*answer) + "\n" : status_text(*answer);
      std::fputs(((redraws ? kClear : "") + text).c_str(), stdout);
      std::fflush(stdout);
      if (!flags->watch) return kDone;
      std::this_thread::sleep_for(std::chrono::seconds(1));
    }
  };
}

}  // namespace paceline::cli
