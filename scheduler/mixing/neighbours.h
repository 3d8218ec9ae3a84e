#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "scheduler/mixing/contributions.h"
#include "scheduler/mixing/mix_engine.h"
#include "scheduler/own_pace/exchanged.h"
#include "scheduler/own_pace/own_pace.h"

namespace paceline::scheduler {

/// The mix engine's surroundings on one agent, for one job: what workers contribute is kept here until all that take
/// from it have mixed, and goes to the agents of neighbours; who is silent for too long is complained of; deaths go to
/// all. What a contribution is, and what a mixing makes of it, the strategy says. Recorded are arrivals, ends of
/// averagings, deaths and what other agents tell: their order decides which shares there are when a worker goes on
/// without the others', and who is known to be gone.
class Neighbours {
 public:
  class Strategy {
   public:
    virtual void carry_out(const MixEngine::Mix& mix) = 0;
    /// Of what a worker contributes to version v, at least 0.
    virtual std::size_t contribution_bytes(Version v) const = 0;
    /// A worker of another agent.
    virtual void on_gone_elsewhere(Rank, Instant) {}
    /// The core knows of a worker, here or elsewhere, that contributes no more.
    virtual void after_gone() {}

   protected:
    ~Strategy() = default;
  };
  struct Options {
    std::shared_ptr<const MixPlan> plan;
    bool columns_add_up = false;  ///< As MixEngine has it.
    bool alike = false;           ///< As Contributions have it.
    std::int64_t every = 1;       ///< Iterations that a worker makes for each exchange.
    bool passing = false;  ///< What is mixed is in no model for good: the job's is made of each worker's own steps.
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

  Neighbours(Workplace& work, OwnPace& pace, Strategy& strategy, Options options);

  // What the coordinator hears, the pace's part included --------------------------------------------------------------
  std::optional<Coordinator::Waiting> waiting() const;
  void on_message(NodeId from, const wire::Envelope::Reader& message, std::vector<std::byte> bulk, Instant now);
  void pass_on(NodeId lost, NodeId to);
  void look(Instant now);
  std::optional<Instant> core_deadline() const;
  void step(const Decision& d);
  // As OwnPace::Strategy has it
  void leave(Rank rank, Instant now);
  void on_node_lost(NodeId node, Instant now);

  // A mixing ----------------------------------------------------------------------------------------------------------
  /// The worker computes its first iteration, the one after `own`. Its turn stays where it is.
  Turn& add(Rank rank, Version own, Instant now);
  /// The worker has published iteration t, and waits. False: it has published nothing of it.
  bool begin_wait(Rank rank, Version t, Duration compute, Instant now);
  void contribute(Rank rank, Version v, Contribution contribution, Instant now);
  /// The worker waits for its `exchange`.
  void want(Rank rank, Instant now);
  /// The row of a mixing. It is the averaging's to keep: an engine that hears of a death releases what is being read.
  std::shared_ptr<Terms> terms_of(const MixEngine::Mix& mix) const;
  /// The worker, and all others who are to get the very same mixture now: their mixings are taken over.
  std::vector<Rank> take_alike(const MixEngine::Mix& mix);
  /// The worker has got its mixture, of these.
  void end_mix(Rank rank, Version v, const Terms& terms, Instant now);
  /// The worker goes on, with the iteration after t.
  void end_wait(Rank rank, Instant now);

  const MixEngine& engine() const { return engine_; }
  /// After `last` some join. `plan`: nullptr: as before.
  void remake(Version last, std::shared_ptr<const MixPlan> plan, const std::vector<Rank>& join, Instant now);
  /// One of this node that was to join after `last` does not.
  void on_not_joined(Rank rank, Version last, Instant now);

 private:
  // What other agents tell about their workers.
  struct Given {
    Version version;
    Contribution contribution;
  };
  struct Gone {
    Version contributed, mixed;  ///< The last ones.
  };
  using Told = std::variant<Given, Gone>;

  void tell_gone(Rank rank, Gone gone, Instant now);
  void hear(Rank rank, Told message, Instant now);
  void take(Rank rank, const Given& given, Instant now);
  void take(Rank rank, const Gone& gone, Instant now);
  void act(MixEngine::Actions actions, Instant now);
  void carry_out(const MixEngine::Send& send);
  void carry_out(const MixEngine::Mix& mix) { strategy_.carry_out(mix); }
  void carry_out(const MixEngine::Release& release) { contributions_.release(release.rank, release.version); }
  void send_share(NodeId to, Rank rank, Version v, const Contribution& contribution);
  /// Whom a worker waits for, and when that is to be complained of.
  std::optional<Rank> missing(Rank rank, const Turn& turn) const;
  Instant complaint_at(const Turn& turn) const { return std::max(turn.since, turn.complained) + pace_.patience(); }
  void on_awaited(Rank rank, Version v, Instant now);

  Workplace& work_;
  OwnPace& pace_;
  Strategy& strategy_;
  Version exchanged_by(Version own) const { return Version{(own.value + 1) / every_ - 1}; }

  const std::int64_t every_;
  const bool passing_;
  MixEngine engine_;
  Contributions contributions_;
  std::map<Rank, Turn> turns_;
  Exchanged<Told> exchanged_;
  std::vector<std::pair<Rank, Given>> early_;  ///< Of versions whose graph is being agreed on.
  std::deque<std::pair<MixEngine::Action, Instant>> pending_actions_;
  bool acting_ = false;
};

}  // namespace paceline::scheduler
