#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "scheduler/rounds/late_merges.h"
#include "scheduler/rounds/partial_sums.h"
#include "scheduler/rounds/sealing.h"
#include "scheduler/shell/coordinator.h"

namespace paceline::scheduler {

/// Coordinator of the round engine on one agent, for one job: decodes, steps the core, and makes of the sums of groups
/// what their members get. Averagings and late merges run in the order in which the engine asked for them.
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
  bool is_free(Rank rank) const override { return engine_.is_free(rank); }
  void on_return(Rank rank, Instant now) override;
  /// At the next sync.
  void stop_soon() override { stop_wanted_ = true; }
  Version done() const override { return engine_.done(); }
  Version last() const override { return engine_.last(); }
  std::int64_t period() const override { return engine_.plan().period(); }
  Duration median_step() const override { return engine_.median_step(); }
  bool evaluations_hold() const override { return true; }

  using Kind = Decision::Kind;

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
  void give_back(Rank rank);
  bool is_ready(const RoundEngine::Action& action);
  bool waits_for_start() const;
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
  void carry_out(const RoundEngine::Admit& a, Instant now);

  template <class Fill>
  void send_activation(NodeId to, const Fill& fill);

  Round round(Version v) const { return engine_.plan().round(v); }
  collective::Reduction prepare_average(const RoundEngine::Execute& what);
  void add_outputs(const RoundEngine::Execute& what, std::int32_t contributions, collective::Reduction& to);
  void finish_average(const RoundEngine::Execute& what, Instant now);
  void deliver(const RoundEngine::Execute& what);
  void note_contents(const RoundEngine::Execute& what);
  void tell_executed(const RoundEngine::Execute& what);
  std::vector<Rank> evaluators(const std::vector<Rank>& fresh, bool over) const;

  const Options options_;
  RoundEngine engine_;
  std::optional<OuterModel> outer_;
  const bool abandons_;
  PartialSums sums_;
  Sealing sealing_;
  LateMerges merges_;
  std::deque<std::pair<RoundEngine::Action, Instant>> pending_actions_;
  bool acting_ = false;
  std::vector<Rank> outputs_;  ///< Local members whose windows hold a result in progress (of the averaging in flight).
  RoundSums executed_sums_;    ///< Of the averaging that is being finished.
  std::int32_t members_ = 0;   ///< Of the newest average of all.
  bool stop_wanted_ = false;
};

}  // namespace paceline::scheduler
