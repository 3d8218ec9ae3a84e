#include <cstdio>
#include <memory>

#include "cli/cluster_paths.h"
#include "cli/commands.h"
#include "cli/get_view.h"
#include "cli/list_view.h"
#include "runtime/base/json.h"

namespace paceline::cli {

Action add_get(Flags app, Ask ask) {
  struct Given {
    std::string what;
    std::string actor;
    std::string name;
    bool json = false;
  };
  auto flags = std::make_shared<Given>();
  Flags command = app.command("get", "Show all that is known of one actor");
  command.add("what", &flags->what, "").required().one_of({"actor"});
  command.add("actor", &flags->actor, "its name, or its id as `paceline list actors` shows it").required();
  command.add("--name", &flags->name, std::string("of the cluster; ") + kAnyCluster);
  command.add("--json", &flags->json, "a JSON object");
  return [flags, ask = std::move(ask)] {
    if (flags->what != "actor")
      return report({ErrorKind::invalid, "one " + flags->what + " cannot be shown: try `paceline get actor NAME`"});
    const auto directory = find_any_cluster(flags->name);
    if (!directory) return report(directory.error());
    const auto answer = ask(*directory, "status", {{"patient", true}, {"actors", "all"}, {"workers", "all"}});
    if (!answer) return report(answer.error());
    const auto actor = actor_found(*answer, flags->actor);
    if (!actor) {
      say_silent(silent_nodes(Listed::actors, *answer, {}), "actors");
      return report(actor.error());
    }
    std::fputs((flags->json ? json_text(*actor) + "\n" : actor_text(*actor)).c_str(), stdout);
    return kDone;
  };
}

}  // namespace paceline::cli
