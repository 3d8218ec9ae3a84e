#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "algorithms/strategy.h"
#include "cli/cluster_paths.h"
#include "cli/commands.h"
#include "runtime/base/json.h"

namespace paceline::cli {
namespace {

using nlohmann::json;

}  // namespace

Action add_set(Flags app, Ask ask) {
  struct Given {
    std::int64_t job = 0;
    std::string strategy, period, grace;
    std::optional<double> lr_factor;
    std::string name;
    bool json = false;
  };
  auto flags = std::make_shared<Given>();
  Flags command = app.command("set", "Change the strategy, or learning rates, of a training job while it runs");
  command.add("job", &flags->job, "its number, as `paceline status` shows it").required();
  command.add("--strategy", &flags->strategy, "that it is to go on with, as `paceline run` takes it");
  command.add("--period", &flags->period, "the same with another period, such as 8, of a strategy that has one");
  command.add("--grace", &flags->grace, "the same with another grace, such as 20ms or 2x, of a strategy that has one");
  command.add("--lr-factor", &flags->lr_factor, "learning rates are as the script has them, times this");
  command.add("--name", &flags->name, std::string("of the cluster; ") + kAnyCluster);
  command.add("--json", &flags->json, "a JSON object: job, strategy, lr_factor, text, before");
  return [flags, ask = std::move(ask)] {
    const auto directory = find_any_cluster(flags->name);
    if (!directory) return report(directory.error());
    json asked{{"job", flags->job}};
    if (!flags->strategy.empty()) asked["strategy"] = algorithms::with_absolute_paths(flags->strategy);
    if (!flags->period.empty()) asked["parameters"]["period"] = flags->period;
    if (!flags->grace.empty()) asked["parameters"]["grace"] = flags->grace;
    if (flags->lr_factor) asked["lr_factor"] = *flags->lr_factor;
    if (asked.size() == 1)
      return report({ErrorKind::invalid, "say what is to change: --strategy, --period, --grace or --lr-factor"});
    const auto told = ask(*directory, "set", asked);
    if (!told) return report(told.error());
    std::puts(flags->json ? json_text(*told).c_str()
                          : ("job " + std::to_string(flags->job) + " is to go on with " + told->value("text", "") +
                             ", from its next average of all on: the run's own output says when it does")
                                .c_str());
    return kDone;
  };
}

}  // namespace paceline::cli
