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

#include "scheduler/asynchronous/pair_engine.h"
#include "tests/sim/explorer/cluster_shell.h"
#include "tests/sim/explorer/told.h"
#include "tests/sim/explorer/walk.h"

namespace paceline::explorer {

using scheduler::PairEngine;

/// One small job of workers that meet in pairs.
struct PairModel {
  std::string name;
  std::function<std::optional<Rank>(Rank, Version)> partner;
  std::vector<NodeId> node_of;
  std::int32_t nodes = 2;
  Version last{1};
  bool crash = false;  ///< One worker dies somewhere.
  bool pause = false;  ///< One worker stands still somewhere; where others wait for it, it may leave.
  Loss loss = Loss::none;
};

/// A defect of a shell or a network around the pair engine. `harmless` ones it must bear.
enum class PairMutation {
  none,
  loses_a_message,
  forgets_the_dead,
  gives_the_mean_to_one,
  steps_twice,
  ends_before_it_is_settled,
  waits_for_the_frozen,
  takes_from_the_lost,
  goes_on_waiting_for_the_lost,
  // Harmless: there is nothing to agree on, nor do two messages that are under way depend on each other
  overtakes,
  passes_nothing_on,
  does_not_wait_for_the_flush,
};

/// What a model is: the mean of its last meeting, and the steps since.
struct PairValue {
  Rank initiator{-1};
  Version version{-1};
  std::int32_t steps = 0;

  bool operator==(const PairValue&) const = default;
};

struct PairMessage {
  std::optional<PairEngine::Phase> phase;  ///< None: all workers of the agent have done their last iteration.
  PairEngine::Meeting meeting = {};
  PairValue value = {};
};
void put(std::string& out, const PairMessage& message);

struct PairAgent {
  struct Work {
    std::optional<PairEngine::Meeting> average;  ///< None: a step.
    Rank initiator{};
    PairValue visitor = {};
  };
  ToldPtr<PairEngine> engine;
  std::vector<Work> work;
  std::map<Rank, PairValue> visitors;  ///< By initiator: the lower model, here from another agent.
  std::set<Rank> ended;
  std::set<NodeId> done;
  bool told = false, gathered = false;
};

struct PairWorker {
  enum class Phase : std::uint8_t { before, computing, waiting, over };
  Phase phase = Phase::before;
  Version t{0};
  bool dead = false, paused = false;
  bool met = false;  ///< In this iteration.
  PairValue model = {};
  std::optional<std::pair<PairEngine::Meeting, PairValue>> lent = {};  ///< To another agent.
};

struct PairState {
  using Body = PairMessage;
  std::vector<PairAgent> agents;
  Network<PairMessage> network;
  std::vector<PairWorker> workers;
  std::map<std::pair<Rank, Rank>, PairValue> half;  ///< Means that only the higher of two (initiator, partner) has yet.
  bool crash_used = false, pause_used = false, spoilt = false;
};
std::string bytes_of(const PairState& state);

/// Walks through all states of the model.
Walk walk(const PairModel& model, PairMutation mutation = PairMutation::none);

}  // namespace paceline::explorer
