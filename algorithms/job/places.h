#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

namespace paceline::job {

/// Which of a job's places for workers are taken, and what a driver does so that as many are as somebody wants. Pure:
/// what is heard of workers goes in, whom to start and whom to ask to leave comes out.
///
///   vacant -> starts -> there -> leaves (asked; it does after its next average) -> over -> vacant
///                         \-> away (it comes back) -> there
///                         \-> lost: its place is as good as vacant, and wanted no more, as that of one that ends
///                             before it is there
///
/// Places are taken and given up so that nodes have as many workers as each other. A node keeps one: from its workers
/// it learns how long the job is, and gets the others' model.
class Places {
 public:
  struct Steps {
    std::vector<std::int32_t> start;  ///< Ranks, for each of which a worker is to be made.
    std::vector<std::int32_t> ask;    ///< To leave.
  };

  Places() = default;
  /// `node_of`: of each place. `vacant`: those that the job begins without.
  Places(std::vector<std::int32_t> node_of, const std::vector<std::int32_t>& vacant);

  bool is_vacant(std::int32_t rank) const { return state(rank) == State::vacant; }
  /// It has been started, and is not there yet.
  bool is_on_its_way(std::int32_t rank) const { return state(rank) == State::starts; }
  /// It was asked to leave, and may have.
  bool is_leaving(std::int32_t rank) const { return state(rank) == State::leaves || state(rank) == State::over; }
  /// Those that are taken, or being taken: neither vacant nor lost, nor on their way out.
  std::int32_t taken() const;
  std::optional<std::int32_t> wanted() const { return wanted_; }

  /// So many are wanted, from now on.
  void want(std::int32_t workers) { wanted_ = workers; }
  /// What the job's nodes, and the head, tell its driver: want(), and what follows but on_over().
  void on_event(const nlohmann::json& event);
  void on_left(std::int32_t rank, bool returns, bool drained);
  void on_there(std::int32_t rank);
  /// The call that is its work has returned. One that was only on its way is wanted no more: another would fare as it.
  void on_over(std::int32_t rank);
  void on_node_lost(std::int32_t node);

  /// What is to be done now; the same workers are asked to leave again and again until they have.
  Steps next();

 private:
  enum class State { vacant, starts, there, away, leaves, over, lost, unreachable };
  State state(std::int32_t rank) const { return states_.at(static_cast<std::size_t>(rank)); }
  void set(std::int32_t rank, State state) { states_.at(static_cast<std::size_t>(rank)) = state; }
  bool is_one(std::int32_t rank) const { return rank >= 0 && static_cast<std::size_t>(rank) < states_.size(); }
  bool is_taken(std::int32_t rank) const;
  void lose(std::int32_t rank, State state);
  std::int32_t taken_on(std::int32_t node) const;
  std::int32_t there_on(std::int32_t node) const;
  std::optional<std::int32_t> next_to_start() const;
  std::optional<std::int32_t> next_to_leave() const;

  std::vector<std::int32_t> node_of_;
  std::vector<State> states_;
  std::optional<std::int32_t> wanted_;
};

}  // namespace paceline::job
