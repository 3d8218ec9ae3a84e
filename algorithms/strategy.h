#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"
#include "scheduler/rounds/round_plan.h"

namespace paceline::algorithms {

using scheduler::Grace;
using scheduler::Lateness;
using scheduler::Payload;
using scheduler::Trigger;

/// Who averages together.
struct Groups {
  enum class Kind { all, butterfly };
  Kind kind = Kind::all;
  std::int32_t size = 0;  ///< butterfly: S; 0 = sqrt(P), 2^ceil(log2(P)/2).
};

/// When a round is due.
struct Period {
  enum class Kind { every, adacomm, whole_run };
  Kind kind = Kind::every;
  std::int64_t steps = 1;  ///< tau, or tau_0 of AdaComm.
  double interval_s = 60;  ///< AdaComm: T_0.
  double gamma = 0.5;
  double slack = 0;
  std::int64_t loss_window = 100;
  bool reset_on_lr_change = false;
};

/// One row of answers about one kind of averaging (docs/ARCHITECTURE.md, "An averaging is a task with a trigger").
struct Tier {
  Payload payload = Payload::models;
  Groups groups = {};
  Period period = {};
  Trigger trigger = Trigger::all_arrived;
  Lateness late = Lateness::waits;
  std::optional<Grace> grace = {};
};

/// A strategy is an ordered list of tiers; where two are due at the same iteration the last one holds.
struct Strategy {
  std::string name = {};  ///< As the user wrote it.
  std::vector<Tier> tiers = {};
  std::int32_t batches = 1;  ///< nonblocking: mini-batches (bodies) an update; others: 1 unless accumulate is set.
  enum class Normalise { a, b, d } normalise = Normalise::b;  ///< nonblocking only (algorithms 11).
  bool rotate_shards = false;                                 ///< Worker i reads shard (i + epoch) mod P.
  double block_momentum = 0;                                  ///< AdaComm 5.3.1; 0: off.
  std::int64_t warmup = 0;

  /// It says itself how many mini-batches an update has (those that are late are abandoned); `accumulate` is for
  /// others.
  bool brings_batches() const { return !tiers.empty() && tiers.back().late == Lateness::abandons; }
};

/// Parses "wagma(group=2,sync=10,late=skip,grace=2x)" and checks every parameter against P.
/// `invalid` names the strategy or parameter, its value and its range, and what the algorithm needs; unknown names list
/// the known ones.
Result<Strategy> parse_strategy(std::string_view text, std::int32_t workers);

/// One line a strategy for `--help`: spelling, defaults, one sentence.
struct StrategyHelp {
  std::string spelling;
  std::string sentence;
};
std::vector<StrategyHelp> strategy_help();

/// The pure plan that the round engine asks. `total` = T: version T-1 is always a sync.
std::unique_ptr<scheduler::RoundPlan> make_plan(const Strategy& strategy, std::int32_t workers, std::int64_t total);

}  // namespace paceline::algorithms
