#include <cstdio>
#include <memory>
#include <optional>

#include "cli/cluster_paths.h"
#include "cli/commands.h"
#include "cli/get_view.h"
#include "cli/list_view.h"
#include "runtime/base/json.h"
#include "runtime/base/read_number.h"

namespace paceline::cli {
namespace {

struct Actors {
  Ask ask;
  FindActor find;
  KillActor kill;
};

/// The id that a text is; nullopt: it is none.
std::optional<ActorId> id_of(const std::string& text) {
  const auto number = read_number<std::uint64_t>(text);
  return number ? std::optional(ActorId(*number)) : std::nullopt;
}

/// The only one of this name that lives, also without having claimed it.
Result<ActorId> living(const std::filesystem::path& cluster, const std::string& name, const Ask& ask) {
  const auto status = ask(cluster, "status", {{"patient", true}, {"actors", "all"}});
  if (!status) return tl::unexpected(status.error());
  const auto actor = actor_found(*status, name);
  const auto silent = silent_nodes(Listed::actors, *status, {});
  if (!actor) say_silent(silent, "actors");
  if (!actor) return tl::unexpected(actor.error());
  if (!silent.empty())
    return fail(ErrorKind::disconnected, "actor '" + name + "' is " + actor->value("id", std::string()) +
                                             ", but there may be others of this name on node " + silent.front() +
                                             ", which does not answer: end it by its id");
  return id_of(actor->value("id", std::string())).value_or(ActorId{});
}

/// Whoever has claimed the name, else of this id, else of this name.
Result<ActorId> kill_one(const std::filesystem::path& cluster, const std::string& actor, const Actors& actors) {
  const auto kill = [&](ActorId id) { return actors.kill(cluster, id).map([id] { return id; }); };
  const auto is_nobody = [](const Result<ActorId>& one) { return !one && one.error().kind == ErrorKind::not_found; };
  auto killed = actors.find(cluster, actor).and_then(kill);
  const auto id = id_of(actor);
  if (id && is_nobody(killed)) killed = kill(*id);
  if (!is_nobody(killed)) return killed;
  const auto called = living(cluster, actor, actors.ask);
  return id && is_nobody(called) ? killed : called.and_then(kill);
}

}  // namespace

Action add_kill(Flags app, Ask ask, FindActor find_actor, KillActor kill_actor) {
  struct Given {
    std::string actor;
    std::string name;
    bool json = false;
  };
  auto flags = std::make_shared<Given>();
  Flags command = app.command("kill", "End an actor, by its name or its id");
  command.add("actor", &flags->actor, "its name, or its id as `paceline list actors` shows it").required();
  command.add("--name", &flags->name, std::string("of the cluster; ") + kAnyCluster);
  command.add("--json", &flags->json, "a JSON object: id");
  return [flags, actors = Actors{std::move(ask), std::move(find_actor), std::move(kill_actor)}] {
    const auto directory = find_any_cluster(flags->name);
    if (!directory) return report(directory.error());
    const auto killed = kill_one(*directory, flags->actor, actors);
    if (!killed) return report(killed.error());
    const auto id = to_string(*killed);
    std::puts(flags->json ? json_text({{"id", id}}).c_str() : ("actor " + id + " has ended").c_str());
    return kDone;
  };
}

}  // namespace paceline::cli
