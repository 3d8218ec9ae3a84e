#include "cli/running.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <vector>

#include "cli/cells.h"
#include "runtime/base/instant.h"
#include "runtime/base/json.h"
#include "runtime/base/readable.h"
#include "runtime/wire/base64.h"

namespace paceline::cli {
namespace {

using nlohmann::json;

constexpr std::size_t kNameShown = 60;
constexpr std::size_t kNamesShown = 3;

json running_of(const json& worker, const NameOf& name_of) {
  json running = json::array();
  const json memory = worker.value("spans", json());
  if (!memory.is_object()) return running;
  const auto spans = spans_in(memory);
  const double now = number(memory, "now_ns");
  for (const auto& span : spans.running) {
    const auto name = name_of(span.name);
    running.push_back({{"name", name.empty() ? json() : json(name)},
                       {"task", span.task.value == 0 ? json() : json(to_string(span.task))},
                       {"owner", span.owner.empty() ? json() : json(readable(span.owner))},
                       {"thread", span.thread},
                       {"for_s", std::max(0.0, (now - static_cast<double>(span.began_ns)) * 1e-9)}});
  }
  return running;
}

/// Whether a worker is lent for the tasks of this row.
bool is_lent_for(const json& worker, const json& tasks) {
  const auto same = [&](const char* name) { return worker.value(name, json()) == tasks.value(name, json()); };
  return worker.value("lent_s", json()).is_number() && same("owner") && same("cpus") && same("memory") && same("on") &&
         same("spread");
}

}  // namespace

actors::ReadSpans spans_in(const json& copy) {
  auto bytes = wire::from_base64(cell(copy, "head"));
  bytes.resize(offsetof(actors::SpanMemory, names));
  bytes += wire::from_base64(cell(copy, "names"));
  bytes.resize(offsetof(actors::SpanMemory, spans));
  bytes += wire::from_base64(cell(copy, "over"));
  return actors::read_spans({reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()});
}

void tell_running(json& status, const NameOf& name_of) {
  if (!status.is_object()) return;
  const auto rows = [&](const char* name) {
    std::vector<json*> found;
    if (status.contains(name) && status[name].is_array())
      for (json& row : status[name])
        if (row.is_object()) found.push_back(&row);
    return found;
  };
  const auto workers = rows("workers");
  for (json* const worker : workers) {
    (*worker)["running"] = running_of(*worker, name_of);
    worker->erase("spans");
  }
  for (json* const tasks : rows("tasks")) {
    auto& running = (*tasks)["running"] = json::array();
    for (const json* const worker : workers) {
      if (!is_lent_for(*worker, *tasks)) continue;
      for (json one : (*worker)["running"]) {
        one["worker"] = worker->value("worker", json());
        one["node"] = worker->value("node", json());
        running.push_back(std::move(one));
      }
    }
  }
}

std::string without_parameters(std::string name) {
  const auto end = name.rfind(')');
  if (end == name.npos || (end + 1 != name.size() && name.substr(end + 1) != " const")) return name;
  int depth = 0;
  for (std::size_t i = end + 1; i-- > 0;) {
    depth += name[i] == ')' ? 1 : name[i] == '(' ? -1 : 0;
    if (depth == 0) return i == 0 ? name : name.substr(0, i);
  }
  return name;
}

std::string running_text(const json& row) {
  std::vector<std::pair<std::string, int>> counted;
  for (const json& one : list(row, "running")) {
    auto name = std::string(first_of(without_parameters(cell(one, "name")), kNameShown));
    std::replace(name.begin(), name.end(), '\n', ' ');
    if (name == "-") name = "unknown";
    const auto found = std::find_if(counted.begin(), counted.end(), [&](const auto& its) { return its.first == name; });
    if (found == counted.end()) {
      counted.emplace_back(name, 1);
    } else {
      ++found->second;
    }
  }
  std::string text;
  for (std::size_t i = 0; i < std::min(counted.size(), kNamesShown); ++i)
    text += (i == 0 ? "" : ", ") + (counted[i].second == 1 ? "" : std::to_string(counted[i].second) + " ") +
            counted[i].first;
  if (counted.size() > kNamesShown) text += ", and others";
  return text.empty() ? "-" : text;
}

}  // namespace paceline::cli
