#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "scheduler/rounds/used_partials.h"
#include "scheduler/rounds/weighing.h"
#include "scheduler/shell/workplace.h"

namespace paceline::scheduler {

/// What is gathered for each group of each version until it is executed: what this agent's workers contribute, and
/// partial sums of it that go to, and come from, other agents. Of an agent that is lost they are passed on
/// (used_partials.h).
class PartialSums {
 public:
  using Key = UsedPartials::Key;
  struct Contribution {
    Rank rank;
    memory::Buffer buffer;
    std::int64_t samples;
    std::int64_t through;  ///< As BufferTag has it.
  };
  struct Group {
    // Of this agent:
    std::vector<Contribution> contributions;
    std::int64_t bodies = 0;
    RoundSums sums;
    Contents contents;
    std::map<NodeId, RemotePartial> remote;  ///< Of the others.
    std::shared_ptr<PooledBytes> own;        ///< nullptr: nobody here has given anything.
    bool is_summed = false;
    std::vector<NodeId> targets;

    bool has(Rank contributor) const;
    std::vector<Rank> contributors() const;
    /// Of all agents.
    RoundSums totals() const;
    Contents all_contents() const;
    Weighing::Total total() const;
  };

  PartialSums(Workplace& work, const Weighing& weighing) : work_(work), weighing_(weighing) {}

  Group& group(Key key) { return groups_[key]; }
  /// This agent's goes to `to` once it is there.
  void send(Key key, NodeId to);
  /// Another agent's has come, which all here have still to execute if its version is later than `done`. Whose it is;
  /// nullopt: it does not count, or cannot be one, and then the job fails.
  std::optional<NodeId> on_partial(NodeId from, const wire::Partial::Reader& header, std::vector<std::byte> sum,
                                   Version done);
  void pass_on(NodeId lost, NodeId to);
  void on_lost(NodeId node) { used_.on_lost(node); }

  /// Adds all contributions: this agent's, and where there are `others` those agents' partial sums. Returns how many
  /// they are; nullopt: one is of another model, and the job fails.
  std::optional<std::int32_t> add_up(Key key, const std::vector<NodeId>& others, collective::Reduction& to) const;
  /// The group has executed its version.
  void on_executed(Key key, const std::vector<NodeId>& others);
  /// What is left of versions that are done was passed on to an agent that has no part in it.
  void forget(Version done) { groups_.erase(groups_.begin(), groups_.upper_bound({done.value, INT32_MAX})); }

 private:
  bool is_sound(NodeId from, const RemotePartial& partial);
  void add_own(const Group& group, collective::Reduction& to) const;
  collective::Reduction prepare(Key key);
  void finish(Key key);
  void send_own(Key key, NodeId to);
  void send(Key key, const Summed& summed, Piece sum, NodeId of, NodeId to);

  Workplace& work_;
  const Weighing& weighing_;
  std::map<Key, Group> groups_;
  UsedPartials used_;
};

}  // namespace paceline::scheduler
