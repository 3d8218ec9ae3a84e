#include "cli/native/stack.h"

#include <cstdio>
#include <memory>

#include "cli/cluster_paths.h"
#include "cli/commands.h"
#include "cli/list_view.h"
#include "cli/native/callee_names.h"
#include "cli/running.h"
#include "cli/stack_view.h"
#include "runtime/base/json.h"
#include "runtime/process/this_machine.h"

namespace paceline::cli {

Action add_stack(Flags app, Ask ask) {
  struct Given {
    std::string worker;
    std::optional<std::int64_t> node;
    std::string name;
    bool json = false;
  };
  auto flags = std::make_shared<Given>();
  Flags command = app.command("stack", "Show where all threads of a worker stand");
  command.add("worker", &flags->worker, "its number, as `paceline list workers` shows it, its id, or its actor's name")
      .required();
  command.add("--node", &flags->node, "the worker's, where several have workers of this number");
  command.add("--name", &flags->name, std::string("of the cluster; ") + kAnyCluster);
  command.add("--json", &flags->json, "a JSON object");
  return [flags, ask = std::move(ask)] {
    const auto directory = find_any_cluster(flags->name);
    if (!directory) return report(directory.error());
    auto answer = ask(*directory, "status", question_for(Listed::workers));
    if (!answer) return report(answer.error());
    CalleeNames names;
    tell_running(*answer, [&](const actors::SpanName& name) { return names.name_of(name); });
    const auto worker = worker_found(*answer, flags->worker, flags->node, process::this_machine());
    if (!worker) {
      say_silent(silent_nodes(Listed::workers, *answer, {.node = flags->node}), "workers");
      return report(worker.error());
    }
    const auto stacks = stacks_of(worker->value("pid", -1));
    if (!stacks) return report(stacks.error());
    std::fputs((flags->json ? json_text(stack_json(*worker, *stacks)) + "\n" : stack_text(*worker, *stacks)).c_str(),
               stdout);
    return kDone;
  };
}

}  // namespace paceline::cli
