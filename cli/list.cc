#include <cstdio>
#include <memory>

#include "cli/cluster_paths.h"
#include "cli/commands.h"
#include "cli/list_view.h"
#include "cli/native/callee_names.h"
#include "cli/running.h"
#include "runtime/base/json.h"

namespace paceline::cli {

void say_silent(const std::vector<std::string>& nodes, const std::string& what) {
  for (const auto& node : nodes)
    std::fprintf(stderr, "paceline: node %s does not answer: its %s are not listed\n", node.c_str(), what.c_str());
}

Action add_list(Flags app, Ask ask) {
  struct Given {
    std::string what;
    std::string name;
    ListFilter filter;
    bool json = false;
  };
  auto flags = std::make_shared<Given>();
  Flags command = app.command("list", "List a cluster's nodes, workers, tasks, jobs or actors");
  command.add("what", &flags->what, "").required().one_of({"nodes", "workers", "tasks", "jobs", "actors"});
  command.add("--node", &flags->filter.node, "what is on this node only");
  command.add("--owner", &flags->filter.owner,
              "only what this process has asked for, or what runs on its behalf: driver/4711, worker/3, detached");
  command.add("--state", &flags->filter.state, "only what is in this state; a wrong one says which there are");
  command.add("--name", &flags->name, kAnyCluster);
  command.add("--json", &flags->json, "a JSON object a line");
  return [flags, ask = std::move(ask)] {
    const auto listed = listed_by(flags->what);
    if (!listed) return report(listed.error());
    const auto directory = find_any_cluster(flags->name);
    if (!directory) return report(directory.error());
    auto answer = ask(*directory, "status", question_for(*listed));
    if (!answer) return report(answer.error());
    CalleeNames names;
    tell_running(*answer, [&](const actors::SpanName& name) { return names.name_of(name); });
    if (const auto problem = problem_text(*answer); !problem.empty())
      std::fprintf(stderr, "paceline: %s\n", problem.c_str());
    const auto silent = silent_nodes(*listed, *answer, flags->filter);
    say_silent(silent, *listed == Listed::nodes ? "figures" : name_of(*listed));
    const auto rows = rows_of(*listed, *answer, flags->filter);
    if (!rows) return report(rows.error());
    std::fputs((flags->json ? rows_json(*rows) : rows_text(*listed, *rows)).c_str(), stdout);
    return silent.empty() ? kDone : kFailed;
  };
}

}  // namespace paceline::cli
