#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "scheduler/record/decision.h"

namespace paceline::scheduler {

/// Lets one agent go the way that it went before: its core is told what it was told then, in the same order. Sans-I/O.
///
/// What comes earlier than it did then waits here for its turn; what comes later is waited for. Some decisions need
/// nothing to happen (activations, deadlines, deaths): they are due at once. What workers publish beside the agent is
/// held back by `may_publish`: nobody publishes past what its next seal took. All of this can be waited for without
/// ending in a circle, since in the recorded run nothing depended on what came after it.
class Replay {
 public:
  explicit Replay(std::vector<Decision> decisions);

  /// The decision whose turn it is; nullptr: all have been taken.
  const Decision* next() const;
  bool is_next(const Decision& decision) const;
  /// Whether the next one has happened, or needs not. Never of a seal, an averaging or a merge: these are the
  /// coordinator's own doing, it takes them when it is there.
  bool is_due() const;
  /// The version of the last seal with this worker that was taken; -1: none.
  Version sealed(Rank rank) const;
  /// A worker, another agent or the job did this (joined, arrived, partial, exchanged, ends); others are not waited
  /// for.
  void happened(const Decision& decision);
  Decision take();

  /// What the next seal with this worker found of it; nullptr: there is none, or it found nothing.
  const Decision::Contribution* next_contribution(Rank rank) const;
  /// The last publication that this worker may make now, as `publication` numbers them.
  std::int64_t may_publish(Rank rank) const;
  /// A number that rises from each publication of a worker to the next: after so many mini-batches of `iteration`.
  static std::int64_t publication(std::int64_t iteration, std::int64_t bodies) {
    return iteration * (std::int64_t{1} << 20) + bodies;
  }
  /// Workers that joined, sooner or later.
  const std::set<Rank>& joining() const { return joining_; }
  /// Where the job ended, if earlier than planned.
  const std::optional<Version>& ends() const { return ends_; }
  /// Where the worker ended: with the job, or earlier.
  std::optional<Version> ends(Rank rank) const;
  /// The worker's end is still to come.
  bool will_go(Rank rank) const;

 private:
  using Key = std::tuple<Decision::Kind, Rank, NodeId, Version, std::int32_t>;
  static Key key_of(const Decision& d) { return {d.kind, d.rank, d.node, d.version, d.group}; }
  static const std::vector<Decision::Contribution>& seals(const Decision& d);
  struct Seals {
    std::vector<std::size_t> decisions;     ///< The seals with this worker, in order.
    std::vector<std::int64_t> may_publish;  ///< Until each of them.
    std::size_t next = 0;                   ///< Index into both.
  };

  std::vector<Decision> decisions_;
  std::size_t at_ = 0;
  std::multiset<Key> happened_;
  std::map<Rank, Seals> seals_;
  std::map<Rank, std::size_t> gone_;  ///< The last decision of its end.
  std::set<Rank> joining_;
  std::optional<Version> ends_;
  std::map<Rank, Version> ends_apart_;
};

}  // namespace paceline::scheduler
