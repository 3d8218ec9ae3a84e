#include <cstdio>
#include <memory>
#include <string>

#include "cli/cluster_paths.h"
#include "cli/commands.h"
#include "runtime/base/json.h"

namespace paceline::cli {

Action add_scale(Flags app, Ask ask) {
  struct Given {
    std::int64_t job = 0;
    std::int64_t workers = 0;
    std::string name;
    bool json = false;
  };
  auto flags = std::make_shared<Given>();
  Flags command = app.command("scale", "Give a training job more or fewer workers while it runs");
  command.add("job", &flags->job, "its number, as `paceline status` shows it").required();
  command.add("workers", &flags->workers, "how many it is to have").required();
  command.add("--name", &flags->name, std::string("of the cluster; ") + kAnyCluster);
  command.add("--json", &flags->json, "a JSON object: job, workers, least, most");
  return [flags, ask = std::move(ask)] {
    const auto directory = find_any_cluster(flags->name);
    if (!directory) return report(directory.error());
    const auto told = ask(*directory, "scale", {{"job", flags->job}, {"workers", flags->workers}});
    if (!told) return report(told.error());
    std::puts(flags->json ? json_text(*told).c_str()
                          : ("job " + std::to_string(flags->job) + " has been asked for " +
                             std::to_string(flags->workers) + " workers: `paceline status` shows them come and go")
                                .c_str());
    return kDone;
  };
}

}  // namespace paceline::cli
