#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "scheduler/shell/workplace.h"
#include "scheduler/views/agreement.h"

namespace paceline::scheduler {

/// How all agents agree on where a job without rounds ends, and on where those that are left begin with a graph of
/// their own: the leader asks all how far their workers have begun, and nobody begins anything further until it has
/// decided (views/agreement.h). What is decided the chronicle hears: `ends`, `ends_apart`, `remade`. Where the leader
/// is lost those that are left tell each other what it had decided, and the next one asks again for what it had not.
class Endings {
 public:
  /// What their owner knows of the workers.
  class Workers {
   public:
    /// Of this node, those too that have not opened their shares yet.
    virtual std::vector<Rank> living_ranks() const = 0;
    /// The last iteration that it may do before it waits.
    virtual Version begun_of(Rank rank) const = 0;
    /// The highest of those of this node's workers.
    virtual Version furthest_begun() const = 0;
    /// The job's last version, as far as it is known.
    virtual Version last() const = 0;
    /// Whether each worker ends with the iteration that it has begun. Else all do the same last one.
    virtual bool ends_apart() const = 0;
    /// Of all nodes: who has not left, as far as it is known here.
    virtual std::vector<Rank> left() const = 0;
    /// The highest version that somebody here may contribute to before anybody begins an iteration after `frozen`.
    virtual Version last_given(Version frozen) const = 0;
    /// Those of this node that are to be in the next graph, and are in none.
    virtual std::vector<Rank> joining() const = 0;
    /// Whether it counts for the core that a worker is held back meanwhile.
    virtual bool records_holds() const = 0;

   protected:
    ~Workers() = default;
  };

  Endings(Workplace& work, Workers& workers) : work_(work), workers_(workers) {}

  /// The job is to end.
  void stop_soon();
  /// On any agent: it is to be agreed on.
  void wish(Agreement::On what);
  /// On the leader. Elsewhere it is only kept in mind, and in a replay nothing is agreed on.
  void agree_on(Agreement::On what);
  void on_message(NodeId from, const wire::Ending::Reader& ending);
  /// Before this agent goes on without `lost`: what `to` may not have heard of it.
  void pass_on(NodeId lost, NodeId to);
  /// This agent has gone on without another.
  void on_node_lost();
  /// Nobody here begins what is later than the furthest iteration that somebody has begun.
  void hold_back() { frozen_ = workers_.furthest_begun(); }
  /// It is decided.
  void let_go();

  /// Where the job ends.
  bool is_decided() const { return end_.has_value(); }
  /// Nobody here begins what is later, while something is being agreed on.
  const std::optional<Version>& frozen() const { return frozen_; }
  /// While a graph is agreed on: the highest version that somebody here may contribute to before.
  const std::optional<Version>& given_until() const { return given_until_; }

 private:
  struct Graph {
    std::int64_t number = 0;  ///< Of the job's; 0: there was none.
    Version last{-1};
    std::vector<Rank> members;  ///< Without those that
    std::set<Rank> join;        ///< come in with it.
  };

  void act(const Agreement::Actions& actions);
  void carry_out(const Agreement::Ask& ask);
  void carry_out(const Agreement::Decide& decided);
  void freeze(Agreement::On what);
  Version given_at_most() const { return given_until_.value_or(*frozen_); }
  void answer(NodeId to, Agreement::On what);
  void decide_end(Version last);
  void decide_graph(const Graph& graph);
  void send_graph(NodeId to, const Graph& graph);
  void send(NodeId to, wire::Ending::Phase phase, Agreement::On what, Version v,
            const std::vector<std::pair<Rank, Version>>& begun = {}, std::int64_t number = 0);

  Workplace& work_;
  Workers& workers_;
  Agreement agreement_;  ///< The leader's; elsewhere it knows what is decided.
  bool wished_ = false;
  std::set<Agreement::On> undecided_;  ///< What somebody wishes for, as far as it is known here.
  std::optional<Version> end_;         ///< That is decided.
  Graph graph_;                        ///< The newest that is.
  std::optional<Version> frozen_;
  std::optional<Version> given_until_;
  std::set<Rank> joining_;             ///< The leader: of other nodes, as far as they have answered.
  std::map<Rank, Version> elsewhere_;  ///< The leader: what other nodes' workers have begun, where workers end apart.
};

}  // namespace paceline::scheduler
