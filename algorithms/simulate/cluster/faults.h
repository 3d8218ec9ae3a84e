#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/simulate/cluster/simulated_cluster.h"
#include "runtime/base/result.h"

namespace paceline::simulate {

/// What goes wrong in a simulated cluster.
enum class FaultKind { kill, kill_agent, kill_head, freeze, freeze_node, freeze_head, cut, cut_one_way };

/// How often it does, on average, whatever else does.
struct FaultRate {
  FaultKind kind;
  double per_s;
};
/// "kill=1/min,freeze-head=2/h": names and rates, by s, min or h. `invalid` names the part and what it takes.
Result<std::vector<FaultRate>> parse_faults(std::string_view text);

/// Faults as they come: each kind independently of all others (exponential times), from a seed. What is frozen or cut
/// goes on after 1 s on average; who was killed is started again by the cluster, workers are not.
class Faults {
 public:
  Faults(const std::vector<FaultRate>& rates, std::uint64_t seed, std::int32_t nodes, Instant now);

  /// When the next one strikes, or the next one ends. nullopt: never.
  std::optional<Instant> next() const;
  /// Does what is due now. What happened, in words; empty: there was nobody to whom it could.
  std::string strike(SimulatedCluster& cluster);

 private:
  struct Striking {
    FaultKind kind;
    NodeId node;
    NodeId other;
    std::uint64_t which = 0;
    bool ends = false;
  };
  std::string carry_out(SimulatedCluster& cluster, const Striking& fault);
  Duration drawn(double per_s);
  std::uint64_t number(std::uint64_t below);
  void draw_next(const FaultRate& rate, Instant now);

  std::mt19937_64 random_;
  const std::int32_t nodes_;
  std::vector<FaultRate> rates_;
  std::multimap<Instant, Striking> due_;
};

}  // namespace paceline::simulate
