#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/mixing/batch_engine.h"
#include "scheduler/mixing/mix_engine.h"
#include "tests/sim/explorer/cluster_shell.h"
#include "tests/sim/explorer/told.h"
#include "tests/sim/explorer/walk.h"

namespace paceline::explorer {

using scheduler::BatchEngine;
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
  bool pause = false;  ///< One worker stands still somewhere. Who waits for it complains.
  Loss loss = Loss::none;
  bool columns_add_up = true;
  bool gives_first = false;  ///< Its model as its last mixing left it, before the step (combine then adapt).
  bool alike = false;        ///< All workers mix the same: agents keep and pass on what others may lack.

  // Batches that the first worker ends (batch_shell.h).
  std::int32_t batches = 0;  ///< N; 0: none, a step is a step.
  bool drops = true;
  BatchEngine::Weight weight = BatchEngine::Weight::share;
  bool any_grace =
      false;  ///< A grace may be over at any moment; else for one only who stands still or has done nothing.
};

/// A defect of a shell, a network or a plan around the engines. `harmless` ones they must bear.
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
  complains_to_nobody,
  // Views
  passes_nothing_on,
  keeps_nothing_to_pass_on,  ///< Of what it has mixed.
  does_not_wait_for_the_flush,
  takes_from_the_lost,  ///< After it has passed on what it had.
  goes_on_waiting_for_the_lost,
  // Batches
  loses_a_signal,
  tells_no_counts,
  passes_nobody_over,
  counts_what_was_not_done,
  steps_twice,
  // Harmless
  delivers_twice,
};

using Contribution = std::pair<Rank, Version>;

/// What an engine is told, and agents tell each other.
struct MixEvent {
  enum class Kind : std::uint8_t { contribution, gone, awaited, signal, counts };
  Kind kind;
  Rank rank;  ///< counts: the agent that they are of, signal: nobody's.
  Version version;
  Version mixed{-1};        ///< Of one that is gone.
  std::int64_t bodies = 0;  ///< Counts.
};
void put(std::string& out, const MixEvent& event);

struct MixAgent {
  ToldPtr<MixEngine> engine;
  std::vector<MixEngine::Mix> work;
  std::set<Contribution> held;
  std::vector<Version> heard;       ///< By rank: the last contribution.
  std::map<Rank, MixEvent> gone;    ///< Whose end it has heard of, and what was the last of them for it.
  std::set<Contribution> used;      ///< Other agents', mixed here, that others may lack.
  std::map<NodeId, Version> given;  ///< What a worker of the agent has last contributed to.

  // Batches
  ToldPtr<BatchEngine> batches;
  Version over{-1};                                         ///< The word on every control page.
  std::map<std::pair<Version, NodeId>, std::int64_t> told;  ///< Others' counts.
};

struct MixWorker {
  enum class Phase : std::uint8_t { computing, contributed, waiting, over };
  Phase phase = Phase::computing;
  Version t{0};
  Version contributed{-1};
  bool dead = false, paused = false, complained = false;

  // Batches: what the worker itself does; its agent may be ahead of it.
  enum class Does : std::uint8_t { bodies, has_reported, asks, steps, rests };
  Does does = Does::bodies;
  Version at{0};
  std::int32_t bodies = 0;
};

struct MixState {
  using Body = MixEvent;
  std::vector<MixAgent> agents;
  Network<MixEvent> network;
  std::vector<MixWorker> workers;
  std::map<Rank, MixEvent> deaths;
  /// Of every version that somebody may still mix: what of each worker's contribution has been taken by those that
  /// cannot be lost, and what the first of them has mixed.
  std::map<Contribution, double> taken;
  std::map<Version, std::set<Rank>> mixtures;
  std::map<Version, double> scales;  ///< What a step was multiplied with, where it is the same for all.
  std::set<Contribution> stepped;    ///< Or stood in for.
  Version completed{-1};             ///< The last batch that somebody has done whole.
  bool crash_used = false, pause_used = false;
  bool spoilt = false;
};

std::string bytes_of(const MixState& state);

/// Walks through all states of the model: every order of messages that keeps each pair's, of steps and of mixings.
Walk walk(const MixModel& model, MixMutation mutation = MixMutation::none);

}  // namespace paceline::explorer
