#include <cstdio>
#include <memory>

#include "cli/cluster_paths.h"
#include "cli/commands.h"
#include "cli/status_view.h"
#include "runtime/base/json.h"

namespace paceline::cli {

Action add_list(Flags app, Ask ask) {
  struct Given {
    std::string what;
    std::string name;
    bool json = false;
  };
  auto flags = std::make_shared<Given>();
  Flags command = app.command("list", "List a cluster's actors: names, classes, processes, owners");
  command.add("what", &flags->what, "actors").required();
  command.add("--name", &flags->name,
              "default: what PACELINE_CLUSTER names, else 'default', else the only one that is up");
  command.add("--json", &flags->json,
              "a JSON object a line: id, name, class, node, pid, state, owner, detached, calls");
  return [flags, ask = std::move(ask)] {
    if (flags->what != "actors")
      return report({ErrorKind::invalid, "there is no list of " + flags->what + ": try `paceline list actors`"});
    const auto root = RuntimeRoot::open();
    if (!root) return report(root.error());
    sweep_stale(*root);
    const auto directory = find_any_cluster(*root, flags->name);
    if (!directory) return report(directory.error());
    const auto answer = ask(*directory, "status", {{"actors", "all"}});
    if (!answer) return report(answer.error());
    for (const auto& node : silent_nodes(*answer))
      std::fprintf(stderr, "paceline: node %s does not answer: its actors are not listed\n", node.c_str());
    std::fputs((flags->json ? actors_json(*answer) : actors_text(*answer)).c_str(), stdout);
    return silent_nodes(*answer).empty() ? kDone : kFailed;
  };
}

}  // namespace paceline::cli
