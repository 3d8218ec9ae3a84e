#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "scheduler/mixing/mix_engine.h"
#include "scheduler/own_pace/own_pace_coordinator.h"

namespace paceline::scheduler {

/// Base of the coordinators of the mix engine on one agent, for one job. What workers contribute is kept in memory of
/// the agent's own until all that take from it have mixed, and goes to the agents of neighbours; who is silent for too
/// long is complained of; deaths go to all. What a contribution is, and what a mixing makes of it, the derived one
/// says. Recorded are arrivals, ends of averagings, deaths and what other agents tell: their order decides which shares
/// there are when a worker goes on without the others', and who is known to be gone.
class NeighbourCoordinator : public OwnPaceCoordinator {
 public:
  std::optional<Waiting> waiting() const final;

 protected:
  /// What a worker contributed to a version; shared with the averagings that read it.
  struct Contribution {
    Piece data;
    double weight = 1;
  };
  struct Term {
    Contribution contribution;
    double weight;
    bool own;
  };
  using Terms = std::vector<Term>;
  /// Where a worker stands.
  struct Turn {
    Version t;            ///< Iteration under way.
    Version exchange;     ///< Its next one, or the one that is outstanding.
    Version contributed;  ///< Last versions that it contributed to and mixed.
    Version mixed;
    Instant since{};  ///< When it began to compute, or to wait, or was last seen at another iteration.
    Version seen;     ///< The iteration that it had begun by then.
    bool waits = false;
    memory::Buffer published{};  ///< Sealed until the worker goes on.
    Instant complained{};
  };

  NeighbourCoordinator(Workplace& work, std::shared_ptr<const MixPlan> plan, bool columns_add_up);

  virtual void on_start(Rank rank, Instant now) = 0;
  virtual void arrived(Rank rank, Version t, Duration compute, Instant now) = 0;
  virtual void carry_out(const MixEngine::Mix& mix) = 0;
  /// Of what a worker contributes to version v, at least 0.
  virtual std::size_t contribution_bytes(Version) const { return work_.windows.bytes(); }

  /// The worker computes its first iteration. `turn` stays where it is.
  void add_turn(Rank rank, Turn& turn, Instant now);
  /// The worker has published iteration t, and waits. False: it has published nothing of it.
  bool begin_wait(Rank rank, Turn& turn, Version t, Duration compute, Instant now);
  /// An averaging for a worker that may be gone when its turn comes.
  void add_for(Rank rank, std::function<collective::Reduction(Member&)> prepare,
               std::function<void(Member&, Instant)> finish);
  /// The same, where nothing follows but the next one.
  void add_sum(Rank rank, std::function<collective::Reduction(Member&)> prepare);
  /// One whose end is recorded as of this worker.
  void add_told(Rank rank, Averaging averaging, const std::vector<Rank>& contributors);
  void contribute(Rank rank, Version v, Contribution contribution, Instant now);
  /// The worker waits for its `exchange`.
  void want(Rank rank, Instant now);
  /// The row of a mixing. It is the averaging's to keep: an engine that hears of a death releases what is being read.
  std::shared_ptr<Terms> terms_of(const MixEngine::Mix& mix) const;
  /// The worker, and all others who are to get the very same mixture now: their mixings are taken over.
  std::vector<Rank> take_alike(const MixEngine::Mix& mix);
  /// The worker has got its mixture.
  void end_mix(Rank rank, Version v, Instant now);
  /// The worker goes on, with the iteration after t.
  static void end_wait(Turn& turn, Instant now);
  void step(const Decision& d) override;
  void look(Instant now) override;
  std::optional<Instant> core_deadline() const override;
  void on_strategy_message(NodeId from, const wire::Envelope::Reader& message, std::vector<std::byte> bulk,
                           Instant now) override;
  void leave(Rank rank, Instant now) override;
  void on_node_lost(NodeId node, Instant now) override;
  void pass_on(NodeId lost, NodeId to) override;
  /// Whether all workers mix the same, so that all agents must have the same contributions of one that is lost. Else
  /// each worker's mixture is its own.
  virtual bool rows_are_alike() const { return false; }
  /// A worker of another agent.
  virtual void on_gone_elsewhere(Rank, Instant) {}
  /// The core knows of a worker, here or elsewhere, that contributes no more.
  virtual void after_gone() {}

  const MixEngine& engine() const { return engine_; }
  /// `plan`: nullptr: as before.
  void remake(Version last, std::shared_ptr<const MixPlan> plan, Instant now);
  std::vector<Rank> left() const override { return engine_.left(); }

 private:
  // What other agents tell about their workers.
  struct Given {
    Version version;
    Contribution contribution;
  };
  struct Gone {
    Version contributed, mixed;  ///< The last ones.
  };

  void exchange(Rank rank, std::variant<Given, Gone> message, Instant now);
  void take(Rank rank, const Given& given, Instant now);
  void take(Rank rank, const Gone& gone, Instant now);
  void act(MixEngine::Actions actions, Instant now);
  void carry_out(const MixEngine::Send& send);
  void carry_out(const MixEngine::Release& release);
  void send_share(NodeId to, Rank rank, Version v, const Contribution& contribution);
  void note_given(Rank rank, Version v);
  bool may_lack(NodeId node, Version v) const;
  void forget_used();
  /// Whom a worker waits for, and when that is to be complained of.
  std::optional<Rank> missing(Rank rank, const Turn& turn) const;
  Instant complaint_at(const Turn& turn) const { return std::max(turn.since, turn.complained) + patience(); }
  void on_awaited(Rank rank, Version v, Instant now);

  MixEngine engine_;
  std::map<Rank, Turn*> turns_;
  std::map<std::pair<Rank, Version>, Contribution> held_;
  std::map<std::pair<Rank, Version>, Contribution> used_;  ///< Other agents', mixed here, that others may lack.
  std::map<NodeId, Version> given_;                        ///< What a worker of the agent has last contributed to.
  /// Not told yet, by the kind of message.
  std::map<std::tuple<NodeId, Rank, std::int32_t>, std::deque<std::variant<Given, Gone>>> exchanged_;
  std::vector<std::pair<Rank, Given>> early_;  ///< Of versions whose graph is being agreed on.
  std::deque<std::pair<MixEngine::Action, Instant>> pending_actions_;
  bool acting_ = false;
};

}  // namespace paceline::scheduler
