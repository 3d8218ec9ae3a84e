#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/mixing/mix_engine.h"

namespace paceline::explorer {

using scheduler::MixEngine;
using scheduler::MixPlan;
using scheduler::Share;

/// One small job of workers that mix with their neighbours.
struct MixModel {
  std::string name;
  std::function<std::unique_ptr<MixPlan>()> plan;
  std::vector<NodeId> node_of;
  std::int32_t nodes = 2;
  Version last{2};
  bool crash = false;  ///< One worker dies somewhere.
};

/// A defect of a shell, a network or a plan around the mix engine. `harmless` ones it must bear.
enum class MixMutation {
  none,
  loses_a_contribution,
  overtakes,                   ///< A sender's messages arrive out of order.
  forgets_the_dead_elsewhere,  ///< Other agents never hear of a death.
  forgets_a_contribution_of_the_dead,
  drops_a_mix,
  mixes_twice,
  ignores_releases,
  releases_at_once,  ///< What was read by one is thrown away.
  takes_another_version,
  plan_differs_on_one_agent,
  keeps_the_share_of_the_dead,  ///< It is lost.
  delivers_twice,               ///< Harmless.
};

using Contribution = std::pair<Rank, Version>;

/// What an engine is told; an engine is what it was told.
struct MixEvent {
  enum class Kind : std::uint8_t { contribution, wanted, mixed, gone };
  Kind kind;
  Rank rank;
  Version version;
  Version mixed{-1};  ///< Of one that is gone.
};

struct MixAgent {
  std::vector<MixEvent> told;
  std::deque<MixEngine::Mix> work;
  std::set<Contribution> held;
  std::vector<Version> heard;    ///< By rank: the last contribution.
  std::optional<MixEvent> gone;  ///< The death that it has heard of.
};

struct MixWorker {
  enum class Phase : std::uint8_t { computing, contributed, waiting, over };
  Phase phase = Phase::computing;
  Version t{0};
  bool dead = false;
};

struct MixState {
  std::vector<MixAgent> agents;
  std::map<std::pair<NodeId, NodeId>, std::deque<MixEvent>> wires;  ///< First in, first out.
  std::vector<MixWorker> workers;
  /// Of every version that somebody may still mix: what of each worker's contribution has been taken.
  std::map<Contribution, double> taken;
  bool crash_used = false, spoilt = false;
};

std::string bytes_of(const MixState& state);

struct MixWalk {
  std::size_t states = 0;
  std::size_t ends = 0;
  std::string violation;  ///< Empty: no promise was broken.
  std::string way;
};

/// Walks through all states of the model: every order of messages that keeps each pair's, of steps and of mixings.
MixWalk walk(const MixModel& model, MixMutation mutation = MixMutation::none);

}  // namespace paceline::explorer
