#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "algorithms/simulate/world.h"
#include "algorithms/weighing.h"

namespace paceline::simulate {

/// What a strategy says beside its plan.
struct Rules {
  std::function<std::unique_ptr<scheduler::RoundPlan>()> plan = {};  ///< One for each agent.
  algorithms::Strategy strategy;
  /// nonblocking over neighbourhoods: whose models are mixed when an update ends; null: gradients are averaged.
  std::shared_ptr<const scheduler::MixPlan> mixing = nullptr;
};

/// Drives the production round engines, one an agent, with real vectors under virtual time. Windows are modelled in
/// memory with the same meaning: what a worker publishes stays until it publishes again; its agent seals it.
/// Deterministic. At one instant things happen in the order of the job contract: steps end and are published · messages
/// · arrivals at a sync · joins · arrivals that execute, first version first · late ones · deadlines.
class Simulation {
 public:
  Simulation(World world, Learner learner, Rules rules);

  /// Until nothing is left to happen. Call once. `invalid`: somebody was to leave or join where there is no average of
  /// all.
  paceline::Result<void> run();

  const std::vector<Row>& rows() const { return outcome_.rows; }  ///< In order of time, worker, step.
  Outcome take_outcome() { return std::move(outcome_); }
  const std::vector<Event>& events() const { return events_; }
  bool ended(Rank rank) const { return worker(rank).phase == Worker::Phase::ended; }
  const Vector& model(Rank rank) const { return worker(rank).model; }
  /// Messages that were sent between agents.
  std::int64_t messages() const { return messages_; }

 private:
  using Engine = scheduler::RoundEngine;

  struct Contribution {
    Version tag;
    Vector numbers;   ///< Model, gradient, or sum of mini-batch gradients.
    double loss = 0;  ///< Mean over the loss window.
    std::int64_t batches = 0;
    std::int64_t steps = 1;  ///< Since the worker last took an average.
  };
  using Contributions = std::map<Rank, Contribution>;

  struct Result {
    Version version{-1};
    Vector mean = {}, sum = {};
    bool sync = false;
    bool models = true;
    Members members = {};
    std::int64_t period = 1;
  };

  struct Worker {
    enum class Phase { computing, waiting, ended, dead };
    Rank rank;
    Phase phase = Phase::computing;
    Version t{0};
    Version next_round{0};
    Instant started{};  ///< nonblocking: when its first mini-batch of t starts (later than the update, if one was in
                        ///< flight).
    Instant arrived{};
    Duration in_vain{};  ///< Of the mini-batch that it still finishes when its update is over.
    std::uint64_t generation = 0;
    std::int64_t batches = 1;  ///< nonblocking: how many of this update's mini-batches it does.
    Vector model;
    Momentum momentum;
    Vector change;  ///< Code parity: what the local step does to the averaged model.
    double loss = 0;
    std::int64_t steps = 0;  ///< Since it last took an average.
    std::deque<double> losses;
    std::optional<Contribution> published;
    std::shared_ptr<const Result> delivered;
    std::map<Version, std::shared_ptr<const Result>>
        retained;  ///< Of versions that it missed; all but the newest only if it merges with them.
    std::optional<World::Fault> fault;
    bool asks = false;  ///< It has left, and its next process asks for its share.
  };

  struct Key {
    Version version;
    std::int32_t group;
    auto operator<=>(const Key&) const = default;
  };
  struct Node {
    std::unique_ptr<Engine> engine;
    std::map<Key, std::shared_ptr<const Contributions>> sealed;
    std::map<Key, std::map<NodeId, std::shared_ptr<const Contributions>>> partials;
    Vector anchor, outer_buffer;
  };

  struct Message {
    NodeId from, to;
    std::variant<Engine::Activate, Engine::Count, Engine::Gone, Engine::SendPartial> body;
    std::shared_ptr<const Contributions> partial;
  };
  /// An average whose numbers have travelled.
  struct Average {
    NodeId node;
    Engine::Execute action;
  };
  struct Finish {
    Rank rank;
    std::uint64_t generation;
  };
  struct Death {
    Rank rank;
  };
  using What = std::variant<Finish, Death, Message, Average>;
  struct Due {
    Instant at;
    std::uint64_t order;
    What what;
    bool operator>(const Due& other) const { return std::tie(at, order) > std::tie(other.at, other.order); }
  };
  struct Todo {
    NodeId node;
    std::variant<Engine::Action, Message> what;
  };

  Worker& worker(Rank rank) { return workers_[static_cast<std::size_t>(rank.value)]; }
  const Worker& worker(Rank rank) const { return workers_[static_cast<std::size_t>(rank.value)]; }
  Node& node(NodeId id) { return nodes_[static_cast<std::size_t>(id.value)]; }
  Node& node_of(Rank rank) { return node(world_.node_of[static_cast<std::size_t>(rank.value)]); }
  NodeId id_of(Rank rank) const { return world_.node_of[static_cast<std::size_t>(rank.value)]; }

  // Time and workers (simulation.cc)
  void at_instant();
  void schedule(Instant at, What what);
  void begin(Worker& w, Version t);
  void finish_step(Worker& w);
  void report(std::vector<Rank> ranks);
  void arrive(Rank rank);
  void tick_due();
  paceline::Result<void> change_views();
  void leave(Worker& w);
  void ask(Worker& w);
  void join(Worker& w, const Worker& donor);
  bool takes_part(const Worker& w) const { return w.phase != Worker::Phase::dead; }
  std::optional<Instant> next_instant() const;
  Instant active_end(const Worker& w, Instant from, Duration d) const;
  Duration active_time(const Worker& w, Instant from, Instant to) const;
  bool abandons() const;
  bool weighs_by_samples() const { return weighing_.by_samples; }
  /// Nobody can ever be given up on: deadlines need not be looked at.
  bool has_deadlines() const;
  void settle(Worker& w);
  void publish_gradient(Worker& w, Vector gradient, double mean_loss);

  // What engines ask for (simulated_shell.cc)
  void act(NodeId id, Engine::Actions actions);
  void drain();
  void send(Message message);
  void hand_over(const Message& message);
  void carry_out(NodeId id, const Engine::Activate& a);
  void carry_out(NodeId id, const Engine::Count& a);
  void carry_out(NodeId id, const Engine::Gone& a);
  void carry_out(NodeId id, const Engine::Seal& a);
  void carry_out(NodeId id, const Engine::SendPartial& a);
  void carry_out(NodeId id, const Engine::Execute& a);
  void carry_out(NodeId id, const Engine::Merge& a);
  void carry_out(NodeId id, const Engine::Verdict& a);
  void carry_out(NodeId id, const Engine::Abandon& a);
  void carry_out(NodeId id, const Engine::Leave& a);
  void carry_out(NodeId, const Engine::Admit&) {}  // When is the job's own (change_views).
  /// nonblocking: how many mini-batches of v are done now.
  std::int64_t batches_done(const Worker& w, Version v) const;
  void end_update(Worker& w, const Engine::Execute& a, const Contributions& all);
  std::optional<Contribution> contribution_of(Worker& w, const Engine::Seal& a);
  void execute(NodeId id, const Engine::Execute& a);
  Result average(NodeId id, const Engine::Execute& a, const Contributions& all, scheduler::RoundSums& sums);
  void mix_models(const Contributions& all, Version v);
  /// A present worker goes on with the average; a late one merges with it.
  void take(Worker& w, const Result& result);
  void merge(Worker& w, const Result& result);
  const Members& members_of(NodeId id, const Engine::Execute& a);
  /// Counts the messages of an average among its members; returns how long they take.
  Duration travel(NodeId id, const Engine::Execute& a);
  void summarise();
  void add_row(Worker& w, Version step, bool fresh, Members group, std::int64_t period, std::int64_t batches = 1);
  template <class Entry>
  void log(Entry what) {
    if (!world_.keeps_events) return;
    events_.push_back({now_, std::move(what)});
  }

  World world_;
  Learner learner_;
  Rules rules_;
  scheduler::Weighing weighing_;
  Instant now_{};
  std::uint64_t order_ = 0;
  std::int64_t messages_ = 0;
  struct Mixture {
    Vector model;
    Members members;
  };
  Version mixed_{-1};  ///< Last version that mix_models() has done, for all agents, and what came out for each worker.
  std::vector<Mixture> mixtures_;
  std::vector<Duration> computed_;
  std::vector<Worker> workers_;
  Members everybody_;
  std::size_t next_view_ = 0;
  Version synced_{-1};   ///< The newest average of all.
  Version grouped_{-1};  ///< Whose groups groups_ holds.
  std::vector<Members> groups_;
  std::vector<Node> nodes_;
  std::priority_queue<Due, std::vector<Due>, std::greater<>> due_;
  std::deque<Todo> todo_;
  Outcome outcome_;
  std::vector<Event> events_;
};

}  // namespace paceline::simulate
