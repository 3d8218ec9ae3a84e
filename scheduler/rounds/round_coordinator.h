#pragma once

#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "scheduler/rounds/outer_model.h"
#include "scheduler/rounds/round_engine.h"
#include "scheduler/rounds/used_partials.h"
#include "scheduler/rounds/weighing.h"
#include "scheduler/shell/coordinator.h"

namespace paceline::scheduler {

/// Coordinator of the round engine on one agent, for one job: decodes, steps the core, moves windows between their
/// roles, runs the reductions on the agent's averaging threads and sends partial sums to other agents. Averagings and
/// late merges run in the order in which the engine asked for them.
class RoundCoordinator final : public Coordinator, private Pace {
 public:
  struct Options {
    Weighing weighing;
    bool adds_own_again = false;       ///< A group's members get the sum, and add their own model once more.
    OuterModel::Step outer_step = {};  ///< What comes of a mean; null: workers see to that.
    std::uint64_t outer_elements = 0;
  };

  RoundCoordinator(Workplace& work, Options options, std::unique_ptr<RoundPlan> plan);

  Pace& pace() override { return *this; }
  std::optional<Waiting> waiting() const override;

 private:
  void on_arrival(Rank rank, Version t, Duration compute, Instant now) override;
  void on_alive(Rank rank, Instant now) override;
  void on_gone(Rank rank, Instant now) override;
  /// At the next sync.
  void stop_soon() override { stop_wanted_ = true; }
  Version done() const override { return engine_.done(); }
  Version last() const override { return engine_.last(); }
  std::int64_t period() const override { return engine_.plan().period(); }
  Duration median_step() const override { return engine_.median_step(); }
  bool evaluations_hold() const override { return true; }

  struct Contribution {
    Rank rank;
    memory::Buffer buffer;
    std::int64_t samples;
  };
  using Kind = Decision::Kind;
  static std::vector<Rank> ranks_of(const std::vector<Contribution>& contributions);
  using Key = UsedPartials::Key;
  /// What is gathered for one group of one version until it is executed.
  struct Gathering {
    std::vector<Rank> members;
    std::vector<Contribution> contributions;
    std::int64_t bodies = 0;
    RoundSums sums;
    std::shared_ptr<PooledBytes> own_partial;  ///< nullptr: nobody here has given anything.
    bool partial_ready = false;
    std::vector<NodeId> partial_targets;
    std::map<NodeId, RemotePartial> remote;
  };

  void on_peer_message(NodeId from, const wire::Envelope::Reader& message, std::vector<std::byte> bulk,
                       Instant now) override;
  void pass_on(NodeId lost, NodeId to) override;
  void step(const Decision& decision) override;
  void look(Instant now) override;
  std::optional<Instant> core_deadline() const override { return engine_.next_deadline(); }
  bool go_on() override;
  bool joins_early() const override { return abandons_ || outer_; }
  bool needs_nothing(const Decision& d) const override;
  bool has_published(Rank rank);
  bool is_ready(const RoundEngine::Action& action);
  bool waits_for_start() const;
  /// A job of one worker, which tells only how far it is (Session::go_on_alone): that is in every round, and the
  /// average is what it has.
  bool is_alone() const { return work_.job.node_of.size() == 1 && !options_.weighing.by_samples; }
  void on_start(Rank rank, Instant now);

  void act(RoundEngine::Actions actions, Instant now);
  void carry_out(const RoundEngine::Activate& a, Instant now);
  void carry_out(const RoundEngine::Count& a, Instant now);
  void carry_out(const RoundEngine::Gone& a, Instant now);
  void carry_out(const RoundEngine::Seal& a, Instant now);
  void carry_out(const RoundEngine::SendPartial& a, Instant now);
  void carry_out(const RoundEngine::Execute& a, Instant now);
  void carry_out(const RoundEngine::Merge& a, Instant now);
  void carry_out(const RoundEngine::Verdict& a, Instant now);
  void carry_out(const RoundEngine::Abandon& a, Instant now);
  void carry_out(const RoundEngine::Leave& a, Instant now);

  void on_partial(NodeId from, const wire::Partial::Reader& header, std::vector<std::byte> sum, Instant now);
  bool is_sound(NodeId from, const RemotePartial& partial);
  bool counts(const memory::BufferTag& tag, Version v) const;
  void add_contribution(Gathering& round, const Contribution& from, const memory::BufferTag& tag, Version v,
                        bool cuts_short);
  std::int64_t newly_computed();
  void add_inputs(collective::Reduction& reduction, const Gathering& round);
  collective::Reduction prepare_partial(const Key& key);
  collective::Reduction prepare_average(const RoundEngine::Execute& what);
  collective::Reduction prepare_merge(const RoundEngine::Merge& what);
  void finish_partial(const Key& key);
  void finish_average(const RoundEngine::Execute& what, Instant now);
  void finish_merge(const RoundEngine::Merge& what, Instant now);
  void send_partial(const Key& key, NodeId to);
  void send_partial(const Key& key, const Summed& summed, Piece sum, NodeId of, NodeId to);
  bool gradients(Version v) const { return engine_.plan().round(v).payload == Payload::gradients; }
  /// Gradients of v are given by whoever is there; the late apply the newest mean, so that models differ after v.
  bool is_partial(Version v) const;
  double scale_of(const Gathering& round, Version v) const;
  void check_learning_rates(const Gathering& round, Version v);

  /// A group's sum, for members who merge with the very version that they missed.
  struct Kept {
    std::vector<std::byte> sum;
    std::int32_t contributions = 0;
  };

  Options options_;
  RoundEngine engine_;
  std::optional<OuterModel> outer_;
  std::map<Rank, std::map<Version, std::shared_ptr<const Kept>>> kept_;
  bool abandons_ = false;
  std::map<Key, Gathering> rounds_;
  UsedPartials used_;
  std::deque<std::pair<RoundEngine::Action, Instant>> pending_actions_;
  bool acting_ = false;
  std::vector<Rank> outputs_;  ///< Local members whose windows hold a result in progress (of the averaging in flight).
  RoundSums executed_sums_;    ///< Of the averaging that is being finished.
  bool stop_wanted_ = false;
  std::int64_t counted_samples_ = 0;
};

}  // namespace paceline::scheduler
