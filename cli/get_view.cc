#include "cli/get_view.h"

#include <algorithm>
#include <vector>

#include "cli/cells.h"
#include "cli/list_view.h"
#include "runtime/base/did_you_mean.h"
#include "runtime/base/json.h"
#include "runtime/observe/table.h"

namespace paceline::cli {
namespace {

using nlohmann::json;

constexpr std::size_t kNamesMax = 10;

Error no_such_actor(const ListRows& actors, const std::string& wanted) {
  std::vector<std::string> names;
  for (const json& actor : actors)
    if (const auto name = cell(actor, "name"); name != "-" && !name.empty()) names.push_back(name);
  std::string text = "no actor '" + wanted + "' lives";
  const auto meant = did_you_mean(wanted, {names.begin(), names.end()});
  if (meant) text += "; did you mean '" + std::string(*meant) + "'?";
  std::string shown;
  for (std::size_t i = 0; i < std::min(names.size(), kNamesMax); ++i) shown += (i == 0 ? "'" : ", '") + names[i] + "'";
  return {ErrorKind::not_found, text + (shown.empty() ? ", nor any other with a name" : ": there are " + shown) +
                                    "; `paceline list actors` shows all"};
}

Error several(const std::vector<const json*>& found, const std::string& wanted) {
  std::string all;
  for (std::size_t i = 0; i < std::min(found.size(), kNamesMax); ++i) {
    const auto owner = found[i]->value("detached", json()) == true ? "detached" : "of " + cell(*found[i], "owner");
    all += (i == 0 ? "" : ", ") + cell(*found[i], "id") + " (node " + cell(*found[i], "node") + ", " + owner + ")";
  }
  if (found.size() > kNamesMax) all += ", and " + std::to_string(found.size() - kNamesMax) + " more";
  return {ErrorKind::invalid,
          std::to_string(found.size()) + " actors are called '" + wanted + "': give the id of one, of " + all};
}

}  // namespace

Result<json> actor_found(const json& status, const std::string& name_or_id) {
  const auto actors = rows_of(Listed::actors, status, {});
  if (!actors) return tl::unexpected(actors.error());
  std::vector<const json*> found;  // A name is looked for first.
  for (const char* field : {"name", "id"}) {
    for (const json& actor : *actors)
      if (!name_or_id.empty() && cell(actor, field) == name_or_id) found.push_back(&actor);
    if (!found.empty()) break;
  }
  if (found.empty()) return tl::unexpected(no_such_actor(*actors, name_or_id));
  if (found.size() > 1) return tl::unexpected(several(found, name_or_id));
  json actor = *found.front();
  for (const json& worker : list(status, "workers")) {
    if (cell(worker, "actor") != cell(actor, "id")) continue;
    for (const char* field : {"worker", "awaited", "waits_for", "waits_s"})
      actor[field] = worker.is_object() && worker.contains(field) ? worker[field] : json();
    actor["worker_state"] = cell(worker, "state");
  }
  return actor;
}

std::string actor_text(const json& actor) {
  observe::Table table({"actor", cell(actor, "id")});
  const auto say = [&](const char* what, const std::string& value) {
    if (!value.empty() && value != "-") table.add({what, value});
  };
  const double may_restart = number(actor, "restarts_max");
  say("name", cell(actor, "name"));
  say("class", cell(actor, "class"));
  say("node", cell(actor, "node"));
  say("worker", cell(actor, "worker"));
  say("pid", number(actor, "pid") > 0 ? cell(actor, "pid") : "-");
  say("state", cell(actor, "state") + (cell(actor, "worker_state") == "frozen" ? ", frozen" : ""));
  say("for", duration(actor, "age_s"));
  say("owner", actor.value("detached", json()) == true ? "detached" : cell(actor, "owner"));
  say("restarts", cell(actor, "restarts") + (may_restart < 0    ? " of any number"
                                             : may_restart == 0 ? ""
                                                                : " of " + number_text(may_restart)));
  say("calls", cell(actor, "calls"));
  say("queued", cell(actor, "queued"));
  if (cell(actor, "waits_for") != "-")
    say("waits for", cell(actor, "waits_for") + ", for " + duration(actor, "waits_s"));
  say("log", cell(actor, "log"));
  return table.text();
}

}  // namespace paceline::cli
