#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <vector>

#include "runtime/base/result.h"

namespace paceline::job {

/// Which of a job's places for workers are taken, and what a driver does so that as many are as somebody wants. Pure:
/// what is heard of workers goes in, whom to start and whom to ask to leave comes out.
///
///   vacant -> starts -> there -> leaves (asked; it does after its next average) -> over -> vacant
///                         \-> away (it comes back) -> there
///                         \-> lost: its place is as good as vacant, and wanted no more, as that of one that ends
///                             before it is there; of a node that is lost once that is back
///
/// Places are taken and given up so that nodes have as many workers as each other, and each keeps one; but what is
/// drained leaves in any case, once there are as many others as there have to be. The lowest node that is left leads,
/// and its last worker evaluates for all: when that is drained the node's places become another's with the job's next
/// leg, in which this node has no part. Where there is no such leg it stays.
///
/// Where more are wanted than there are, nodes that had no part in the job at its start get places that nobody has:
/// those of lost nodes and of drained ones, and a fair share of all. Each node that is there keeps one.
class Places {
 public:
  using Moves = std::map<std::int32_t, std::int32_t>;  ///< Of places, to nodes.
  /// As the head is asked for them.
  static nlohmann::json list(const Moves& moves);
  struct Steps {
    std::vector<std::int32_t> start;  ///< Ranks, for each of which a worker is to be made.
    std::vector<std::int32_t> ask;    ///< To leave.
    Moves move;  ///< The head is to be asked for it, again and again; until nodes that are new have theirs nobody is
                 ///< started.
  };

  Places() = default;
  /// `node_of`: of each place. `vacant`: those that the job begins without. `least`: workers that stay whatever is
  /// drained. `grows`: unless somebody says how many are wanted, as many as nodes have cpus for that come later.
  Places(std::vector<std::int32_t> node_of, const std::vector<std::int32_t>& vacant, std::int64_t least = 1,
         bool grows = false);

  bool is_vacant(std::int32_t rank) const { return state(rank) == State::vacant; }
  /// It has been started, and is not there yet.
  bool is_on_its_way(std::int32_t rank) const { return state(rank) == State::starts; }
  std::int32_t node_of(std::int32_t rank) const { return node_of_.at(static_cast<std::size_t>(rank)); }
  /// It was asked to leave, or does with its node, and may have.
  bool is_leaving(std::int32_t rank) const {
    return state(rank) == State::leaves || state(rank) == State::over || (is_there(rank) && moving_.contains(rank));
  }
  /// Those that are taken, or being taken: neither vacant nor lost, nor on their way out.
  std::int32_t taken() const;
  std::optional<std::int32_t> wanted() const { return wanted_; }
  /// Those that are to leave, and are too few.
  std::vector<std::int32_t> kept() const;

  /// So many are wanted, from now on.
  void want(std::int32_t workers);
  /// This one is to leave, and there is to be one less.
  void drain(std::int32_t rank);
  /// All of a node are to leave, and nobody comes there any more: elsewhere, where there are places.
  void drain_node(std::int32_t node);
  /// What the job's nodes, and the head, tell its driver: want(), and what follows but on_over() and on_moved().
  void on_event(const nlohmann::json& event);
  void on_left(std::int32_t rank, bool returns, bool drained);
  void on_there(std::int32_t rank);
  /// The call that is its work has returned. One that was only on its way is wanted no more: another would fare as it.
  void on_over(std::int32_t rank);
  void on_node_lost(std::int32_t node);
  /// It takes part from now on, or did before, and has got these places. If it was lost, its workers are wanted again,
  /// if nobody has said since how many are.
  void on_node_joined(std::int32_t node, const std::vector<std::int32_t>& places);
  /// There is a node that has no part in the job.
  void on_room(std::int32_t node, std::int32_t cpus);
  /// The head's answer to `move`, or why there is none (algorithms/cluster/head.h, move_places).
  void on_moved(const Result<nlohmann::json>& answer);

  /// What is to be done now; the same workers are asked to leave again and again until they have.
  Steps next();

 private:
  enum class State { vacant, starts, there, away, leaves, over, lost, unreachable };
  State state(std::int32_t rank) const { return states_.at(static_cast<std::size_t>(rank)); }
  void set(std::int32_t rank, State state) { states_.at(static_cast<std::size_t>(rank)) = state; }
  bool is_one(std::int32_t rank) const { return rank >= 0 && static_cast<std::size_t>(rank) < states_.size(); }
  /// Of all ranks.
  template <class Is>
  std::int32_t count(Is is) const {
    std::int32_t count = 0;
    for (std::int32_t rank = 0; is_one(rank); ++rank) count += is(rank) ? 1 : 0;
    return count;
  }
  bool is_there(std::int32_t rank) const { return state(rank) == State::there; }
  bool is_taken(std::int32_t rank) const;
  bool is_last_of_leader(std::int32_t rank) const;
  bool has_to_stay(std::int32_t rank) const;
  std::optional<std::int32_t> node_instead_of(std::int32_t node) const;
  bool goes(std::int32_t rank);
  void want_one_less();
  void lose(std::int32_t rank, State state);
  std::int32_t taken_on(std::int32_t node) const;
  std::int32_t there_on(std::int32_t node) const;
  std::int32_t there() const;
  std::optional<std::int32_t> next_to_start() const;
  std::optional<std::int32_t> next_to_leave() const;
  bool is_free(std::int32_t rank) const;
  bool are_some_leaving() const;
  std::optional<std::int32_t> next_to_move(const std::map<std::int32_t, std::int32_t>& has, std::int32_t share) const;
  void plan_moves();
  void plan_to_leave();

  std::vector<std::int32_t> node_of_;
  std::vector<State> states_;
  std::int64_t least_ = 1;
  bool grows_ = false;
  std::optional<std::int32_t> wanted_;
  std::set<std::int32_t> drained_;                      ///< That have not been asked to leave yet.
  std::set<std::int32_t> closed_;                       ///< Nodes.
  std::set<std::int32_t> kept_;                         ///< Nodes whose places cannot become others'.
  std::set<std::int32_t> later_;                        ///< Nodes that were not there at the start: they get places.
  std::set<std::int32_t> grown_;                        ///< Those for which more are wanted.
  Moves moving_;                                        ///< Asked for, and not done yet.
  std::map<std::int32_t, std::set<std::int32_t>> had_;  ///< Of nodes that were lost: workers that are not there again.
};

}  // namespace paceline::job
