#include "algorithms/simulate/cluster/faults.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "algorithms/parse.h"

namespace paceline::simulate {
namespace {

constexpr std::array<std::pair<std::string_view, FaultKind>, 8> kNames{{{"kill", FaultKind::kill},
                                                                        {"kill-agent", FaultKind::kill_agent},
                                                                        {"kill-head", FaultKind::kill_head},
                                                                        {"freeze", FaultKind::freeze},
                                                                        {"freeze-node", FaultKind::freeze_node},
                                                                        {"freeze-head", FaultKind::freeze_head},
                                                                        {"cut", FaultKind::cut},
                                                                        {"cut-one-way", FaultKind::cut_one_way}}};
constexpr double kEndsPerS = 1;
constexpr double kPerSecondMax = 1000;

/// "2/min": a second.
std::optional<double> rate_in(std::string_view text) {
  const auto slash = text.find('/');
  if (slash == text.npos) return std::nullopt;
  const auto count = algorithms::read_real(text.substr(0, slash));
  const auto unit = text.substr(slash + 1);
  const double unit_s = unit == "s" ? 1 : unit == "min" ? 60 : unit == "h" ? 3600 : 0;
  if (!count || !(*count > 0) || unit_s == 0 || *count / unit_s > kPerSecondMax) return std::nullopt;
  return *count / unit_s;
}

std::string known() {
  std::string names;
  for (const auto& [name, kind] : kNames) names += (names.empty() ? "" : ", ") + std::string(name);
  return names;
}

bool has_end(FaultKind kind) {
  return kind == FaultKind::freeze || kind == FaultKind::freeze_node || kind == FaultKind::freeze_head ||
         kind == FaultKind::cut || kind == FaultKind::cut_one_way;
}

}  // namespace

Result<std::vector<FaultRate>> parse_faults(std::string_view text) {
  std::vector<FaultRate> rates;
  while (!text.empty()) {
    const auto part = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), part.size() + 1));
    const auto equals = std::min(part.find('='), part.size());
    const auto name = part.substr(0, equals);
    const auto* const found =
        std::find_if(kNames.begin(), kNames.end(), [&](const auto& n) { return n.first == name; });
    const auto rate = rate_in(part.substr(std::min(equals + 1, part.size())));
    if (found == kNames.end() || !rate)
      return fail(ErrorKind::invalid, "'" + std::string(part) +
                                          "' is no fault with a rate: give such as kill=1/min, of " + known() +
                                          ", a number above 0 by s, min or h");
    rates.push_back({found->second, *rate});
  }
  return rates;
}

Faults::Faults(const std::vector<FaultRate>& rates, std::uint64_t seed, std::int32_t nodes, Instant now)
    : random_(seed), nodes_(nodes), rates_(rates) {
  for (const auto& rate : rates_) draw_next(rate, now);
}

std::uint64_t Faults::number(std::uint64_t below) { return random_() % below; }

/// Exponential; the same on every machine, as the library's distributions are not.
Duration Faults::drawn(double per_s) {
  const double uniform = (static_cast<double>(random_() >> 11) + 1) * 0x1p-53;  // (0, 1]
  return from_seconds(-std::log(uniform) / per_s);
}

void Faults::draw_next(const FaultRate& rate, Instant now) {
  const auto node = NodeId{static_cast<std::int32_t>(number(static_cast<std::uint64_t>(nodes_)))};
  const auto other = NodeId{static_cast<std::int32_t>(number(static_cast<std::uint64_t>(nodes_)))};
  due_.emplace(now + drawn(rate.per_s), Striking{rate.kind, node, other, number(std::uint64_t{1} << 32)});
}

std::optional<Instant> Faults::next() const { return due_.empty() ? std::nullopt : std::optional(due_.begin()->first); }

std::string Faults::strike(SimulatedCluster& cluster) {
  if (due_.empty()) return {};
  const Instant at = due_.begin()->first;
  const Striking fault = due_.begin()->second;
  due_.erase(due_.begin());
  if (!fault.ends) {
    const auto rate = std::find_if(rates_.begin(), rates_.end(), [&](const auto& r) { return r.kind == fault.kind; });
    draw_next(*rate, at);
  }
  auto what = carry_out(cluster, fault);
  if (!what.empty() && !fault.ends && has_end(fault.kind)) {
    auto end = fault;
    end.ends = true;
    due_.emplace(at + drawn(kEndsPerS), end);
  }
  return what;
}

std::string Faults::carry_out(SimulatedCluster& cluster, const Striking& fault) {
  const auto node = "node " + to_string(fault.node);
  const auto both = node + " and node " + to_string(fault.other);
  const bool begins = !fault.ends;
  switch (fault.kind) {
    case FaultKind::kill:
      return cluster.kill_worker(fault.node, fault.which) ? "a worker of " + node + " is killed" : "";
    case FaultKind::kill_agent: cluster.kill_agent(fault.node); return "the agent of " + node + " is killed";
    case FaultKind::kill_head: cluster.kill_head(); return "the head is killed";
    case FaultKind::freeze:
      if (!cluster.freeze_worker(fault.node, fault.which, begins)) return {};
      return "a worker of " + node + (begins ? " freezes" : " goes on");
    case FaultKind::freeze_node: cluster.freeze(fault.node, begins); return node + (begins ? " freezes" : " goes on");
    case FaultKind::freeze_head: cluster.freeze_head(begins); return begins ? "the head freezes" : "the head goes on";
    case FaultKind::cut:
      if (fault.node == fault.other) return {};
      cluster.partition(fault.node, fault.other, begins);
      return both + (begins ? " cannot reach each other" : " reach each other again");
    case FaultKind::cut_one_way:
      if (fault.node == fault.other) return {};
      cluster.cut_one_way(fault.node, fault.other, begins);
      return node + (begins ? " is not heard by node " : " is heard again by node ") + to_string(fault.other);
  }
  return {};
}

}  // namespace paceline::simulate
