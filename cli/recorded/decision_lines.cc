#include "cli/recorded/decision_lines.h"

#include "runtime/base/json.h"
#include "runtime/observe/format.h"

namespace paceline::recorded {
namespace {

using scheduler::Decision;
using Kind = Decision::Kind;

const char* name_of(Kind kind) {
  switch (kind) {
    case Kind::joined: return "joined";
    case Kind::arrived: return "arrived";
    case Kind::activated: return "activated";
    case Kind::counted: return "counted";
    case Kind::partial: return "partial";
    case Kind::sealed: return "sealed";
    case Kind::executed: return "executed";
    case Kind::merged: return "merged";
    case Kind::gone: return "gone";
    case Kind::looked: return "looked";
    case Kind::ends: return "ends";
    case Kind::gone_elsewhere: return "gone_elsewhere";
    case Kind::exchanged: return "exchanged";
    case Kind::averaged: return "averaged";
    case Kind::stepped: return "stepped";
    case Kind::batched: return "batched";
    case Kind::passed_over: return "passed_over";
    case Kind::frozen: return "frozen";
    case Kind::alive: return "alive";
    case Kind::ends_apart: return "ends_apart";
    case Kind::remade: return "remade";
    case Kind::node_gone: return "node_gone";
    case Kind::returned: return "returned";
    case Kind::back_elsewhere: return "back_elsewhere";
  }
  return "unknown";
}

bool has_group(Kind kind) {
  return kind == Kind::partial || kind == Kind::sealed || kind == Kind::executed || kind == Kind::exchanged;
}

}  // namespace

nlohmann::json decision_json(NodeId node, const Decision& d, Instant start) {
  nlohmann::json line{{"node", node.value}, {"kind", name_of(d.kind)}};
  if (d.rank.value >= 0) line["worker"] = d.rank.value;
  if (d.node.value >= 0) line["from"] = d.node.value;
  if (d.version.value >= 0) line["version"] = d.version.value;
  if (has_group(d.kind)) line["group"] = d.group;
  if (d.at != Instant{}) line["at_s"] = seconds(d.at - start);
  if (d.kind == Kind::arrived) line["took_s"] = seconds(d.took);
  if (d.kind != Kind::sealed && d.kind != Kind::batched && d.kind != Kind::ends_apart && d.kind != Kind::remade)
    return line;
  auto& contributions = line["contributions"] = nlohmann::json::array();
  for (const auto& c : d.contributions) {
    nlohmann::json one{{"worker", c.rank.value}};
    if (c.iteration) one.update({{"iteration", c.iteration->value}, {"batches", c.bodies}});
    contributions.push_back(std::move(one));
  }
  return line;
}

std::string decision_line(NodeId node, const Decision& d, Instant start) {
  std::string line = observe::format("node %d  %10s  %s", node.value,
                                     d.at == Instant{} ? "" : observe::format("%.3f s", seconds(d.at - start)).c_str(),
                                     name_of(d.kind));
  if (d.rank.value >= 0) line += "  worker " + to_string(d.rank);
  if (d.node.value >= 0) line += "  from node " + to_string(d.node);
  if (d.version.value >= 0) line += "  version " + to_string(d.version);
  if (has_group(d.kind)) line += "  group " + std::to_string(d.group);
  if (d.kind == Kind::arrived) line += observe::format("  computed %.3f s", seconds(d.took));
  if (d.kind == Kind::batched && !d.contributions.empty())
    return line + "  mini-batches " + std::to_string(d.contributions.front().bodies);
  std::string fresh, late, nothing;
  for (const auto& c : d.contributions) {
    const std::string worker = " " + to_string(c.rank);
    if (!c.iteration) {
      nothing += worker;
    } else if (*c.iteration == d.version) {
      fresh += worker;
    } else {
      late += worker + " (" + to_string(*c.iteration) + ")";
    }
  }
  if (!fresh.empty()) line += "  fresh" + fresh;
  if (!late.empty()) line += "  late" + late;
  if (!nothing.empty()) line += "  nothing" + nothing;
  return line;
}

}  // namespace paceline::recorded
