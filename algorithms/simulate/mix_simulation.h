#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <queue>
#include <vector>

#include "algorithms/simulate/world.h"
#include "scheduler/mixing/mix_engine.h"

namespace paceline::simulate {

/// What a strategy whose workers mix with their neighbours says beside its plan.
struct MixRules {
  std::shared_ptr<const scheduler::MixPlan> plan = {};
  algorithms::Order order = algorithms::Order::adapt_then_combine;
  bool groups = false;     ///< Rows are means of groups: on a network each is one average.
  bool push_sum = false;   ///< Models are numerators, each with a weight; gradients are taken at their quotient.
  std::int32_t bound = 0;  ///< > 0: shares that were sent at a step's start may arrive this many steps later.
  std::function<std::int64_t()> period = {};
};

/// Drives the production mix engines, one an agent, with real vectors under virtual time. Deterministic. At one instant
/// steps end in worker order, then mixings that are complete are done.
class MixSimulation {
 public:
  MixSimulation(World world, Learner learner, MixRules rules);

  /// Until nothing is left to happen. Call once.
  Outcome run();

 private:
  using Engine = scheduler::MixEngine;

  struct Worker {
    Rank rank;
    Vector x;           ///< Model, or push-sum's numerator.
    double weight = 1;  ///< Push-sum's.
    Momentum momentum;
    Version t{0};         ///< Iteration.
    Version exchange{0};  ///< Its next, or the one that is outstanding.
    bool outstanding = false;
    Version sent_at{0};  ///< Iteration at whose start the outstanding exchange began.
    Vector change;       ///< Combine-then-adapt: what the local step does to the mixed model.
    double loss = 0;
    bool waits = false;
    std::optional<Instant> ended = {};
  };
  /// What a worker contributed to a version; kept while an agent holds it.
  struct Contribution {
    Vector x;
    double weight = 1;
  };
  struct Node {
    std::unique_ptr<Engine> engine;
    std::map<std::pair<Rank, Version>, std::shared_ptr<const Contribution>> held;
  };
  /// What comes at an instant: first steps end, then shares arrive, then groups have averaged.
  struct Due {
    enum class What { step_ends, share_arrives, averaged };
    Instant at;
    What what;
    Rank rank;
    Version version{};  ///< Shares.
    NodeId to{};        ///< Shares.
    std::shared_ptr<const Contribution> share = {};
    bool operator>(const Due& other) const {
      return std::tie(at, what, rank, version, to) >
             std::tie(other.at, other.what, other.rank, other.version, other.to);
    }
  };

  Worker& worker(Rank rank) { return workers_[static_cast<std::size_t>(rank.value)]; }
  NodeId id_of(Rank rank) const { return world_.node_of[static_cast<std::size_t>(rank.value)]; }
  Node& node_of(Rank rank) { return nodes_[static_cast<std::size_t>(id_of(rank).value)]; }

  Vector model_of(const Worker& w) const;
  double kept_share(const Worker& w);
  /// Before this instant.
  bool has_ended(const Worker& w) const { return w.ended && *w.ended < now_; }
  void begin(Worker& w);
  void finish_step(Worker& w);
  void contribute(Worker& w, Version v);
  void count_messages(const Worker& w, Version v);
  void arrive(const Due& share);
  void averaged(Worker& w);
  double message_bytes() const;
  void act(NodeId id, const Engine::Actions& actions);
  void mix(const Engine::Mix& action);
  void end_step(Worker& w, std::vector<Rank> group, bool fresh);
  void take_mixed(Worker& w, Version v, const std::vector<scheduler::Share>& row);

  World world_;
  Learner learner_;
  MixRules rules_;
  Instant now_{};
  std::vector<Worker> workers_;
  std::vector<Node> nodes_;
  std::vector<Duration> computed_;
  Contribution under_way_;       ///< Shares that were sent ahead and are not taken yet, all together.
  std::vector<Rank> may_go_on_;  ///< In this instant, without what they have not been sent.
  std::priority_queue<Due, std::vector<Due>, std::greater<>> due_;
  Outcome outcome_;
};

}  // namespace paceline::simulate
