#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/base/ids.h"
#include "runtime/base/instant.h"

namespace paceline::scheduler {

/// Something that a strategy's core was told on one agent. Cores are deterministic: one that is told the same in the
/// same order decides the same again. So these are all that a run decides by its timing.
struct Decision {
  /// In brackets: the fields that count. The numbers are those of the file.
  enum class Kind : std::uint8_t {
    joined = 1,     ///< A worker opened its share (rank).
    arrived = 2,    ///< A worker has published and waits (rank, version, took: computing).
    activated = 3,  ///< Another agent's activation (node: its root, version).
    counted = 4,    ///< Another agent's worker has arrived (version).
    partial = 5,    ///< Another agent's partial sum is here (node, version, group).
    sealed = 6,     ///< What the members of a group had published (version, group, contributions, took: the training
                    ///< clock, stops).
    executed = 7,   ///< The averaging is done (version, group).
    merged = 8,     ///< The late worker's merge is done (rank).
    gone = 9,       ///< A worker's process has ended (rank).
    looked = 10,    ///< A deadline has passed.
    ends = 11,      ///< The job ends at this version, earlier than planned.
    gone_elsewhere = 12,  ///< A worker of another agent has ended (rank).
    exchanged = 13,       ///< Another agent's message of a strategy without rounds (node, rank, group: which).
    averaged = 14,        ///< A meeting's models are averaged, a worker's averaging is done (rank: who began it).
    stepped = 15,         ///< The worker's step is added to its model (rank).
    batched = 16,         ///< A worker says how many mini-batches of an update count (rank, version, contributions).
    passed_over = 17,     ///< Its agent went on without waiting for that (rank, version).
    frozen = 18,          ///< Nobody begins anything new until it is agreed on where the job ends.
    alive = 19,           ///< A worker gave a sign of life (rank).
    ends_apart = 20,  ///< The same as `ends`, but these workers end with earlier iterations (version, contributions).
    node_gone = 21,   ///< Another agent is lost, with its workers (node).
    remade = 22,      ///< After this version these workers have a graph of their own (version, contributions).
    returned = 23,    ///< A worker that had left has another process, which has shared its model (rank).
    back_elsewhere = 24,  ///< A worker of another agent takes part again (rank).
  };
  /// What the seal found of a member; no iteration: it had published nothing that counts. Of ends_apart: the member's
  /// last iteration.
  struct Contribution {
    Rank rank{-1};
    std::optional<Version> iteration;
    std::int32_t bodies = 0;
    bool operator==(const Contribution&) const = default;
  };

  Kind kind{};
  Rank rank{-1};
  NodeId node{-1};
  Version version{-1};
  std::int32_t group = 0;
  Instant at{};
  Duration took{};
  std::int32_t stops = 0;
  std::vector<Contribution> contributions = {};

  bool operator==(const Decision&) const = default;
  /// The same happening: what the times and contributions are apart.
  bool is_same_event(const Decision& other) const {
    return kind == other.kind && rank == other.rank && node == other.node && version == other.version &&
           group == other.group;
  }
};

}  // namespace paceline::scheduler
