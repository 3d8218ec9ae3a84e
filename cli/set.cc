#include <cstdio>
#include <memory>
#include <string>

#include "algorithms/strategy.h"
#include "cli/cluster_paths.h"
#include "cli/commands.h"
#include "runtime/base/json.h"

namespace paceline::cli {

Action add_set(Flags app, Ask ask) {
  struct Given {
    std::int64_t job = 0;
    std::string strategy;
    std::string name;
    bool json = false;
  };
  auto flags = std::make_shared<Given>();
  Flags command = app.command("set", "Change the strategy of a training job while it runs");
  command.add("job", &flags->job, "its number, as `paceline status` shows it").required();
  command.add("--strategy", &flags->strategy, "that it is to go on with, as `paceline run` takes it").required();
  command.add("--name", &flags->name, std::string("of the cluster; ") + kAnyCluster);
  command.add("--json", &flags->json, "a JSON object: job, strategy, before");
  return [flags, ask = std::move(ask)] {
    const auto directory = find_any_cluster(flags->name);
    if (!directory) return report(directory.error());
    const auto told =
        ask(*directory, "set", {{"job", flags->job}, {"strategy", algorithms::with_absolute_paths(flags->strategy)}});
    if (!told) return report(told.error());
    std::puts(flags->json ? json_text(*told).c_str()
                          : ("job " + std::to_string(flags->job) + " is to go on with " +
                             told->value("strategy", flags->strategy) +
                             ", from its next average of all on: the run's own output says when it does")
                                .c_str());
    return kDone;
  };
}

}  // namespace paceline::cli
