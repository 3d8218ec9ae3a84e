#include <cstdio>
#include <memory>

#include "cli/cluster_paths.h"
#include "cli/commands.h"
#include "cli/list_view.h"
#include "cli/summary_view.h"
#include "runtime/base/json.h"

namespace paceline::cli {

Action add_summary(Flags app, Ask ask) {
  struct Given {
    std::string name;
    bool json = false;
  };
  auto flags = std::make_shared<Given>();
  Flags command = app.command("summary", "Count a cluster's nodes, workers, actors, tasks and jobs, by state");
  command.add("--name", &flags->name, kAnyCluster);
  command.add("--json", &flags->json, "a JSON object");
  return [flags, ask = std::move(ask)] {
    const auto directory = find_any_cluster(flags->name);
    if (!directory) return report(directory.error());
    const auto answer =
        ask(*directory, "status", {{"patient", true}, {"actors", "all"}, {"workers", "all"}, {"tasks", "all"}});
    if (!answer) return report(answer.error());
    const auto silent = silent_nodes(Listed::workers, *answer, {});
    say_silent(silent, "figures");
    const auto summary = summary_of(*answer);
    std::fputs((flags->json ? json_text(summary) + "\n" : summary_text(summary)).c_str(), stdout);
    return silent.empty() ? kDone : kFailed;
  };
}

}  // namespace paceline::cli
