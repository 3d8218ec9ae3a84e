#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "scheduler/rounds/round_plan.h"

namespace paceline::test {

using scheduler::Lateness;
using scheduler::Round;
using scheduler::Trigger;

/// A plan whose answers a test gives as functions. Stateless, so a copy is as good as the original.
class TestPlan final : public scheduler::RoundPlan {
 public:
  struct Answers {
    std::function<Round(Version)> round;
    std::function<std::vector<std::vector<Rank>>(Version)> groups;
    bool publishes_every_iteration = false;
    scheduler::Payload payload = scheduler::Payload::models;
    std::int64_t period = 1;
    std::function<void(Version, const scheduler::RoundSums&)> executed = {};  ///< Told of; nobody: may be empty.
  };

  explicit TestPlan(Answers answers) : answers_(std::move(answers)) {}

  scheduler::Payload payload() const override { return answers_.payload; }
  Round round(Version v) const override { return answers_.round(v); }
  std::vector<std::vector<Rank>> groups(Version v) const override { return answers_.groups(v); }
  Version next_round(Version v) const override {
    while (answers_.round(v).kind == Round::Kind::none) v = v.next();
    return v;
  }
  bool publishes_every_iteration() const override { return answers_.publishes_every_iteration; }
  bool asks_who_is_left() const override {
    const auto trigger = answers_.round(Version{0}).trigger;
    return trigger == Trigger::initiator || trigger == Trigger::quorum;
  }
  void on_executed(Version v, const scheduler::RoundSums& sums) override {
    if (answers_.executed) answers_.executed(v, sums);
  }
  std::int64_t period() const override { return answers_.period; }
  std::int32_t buffers() const override { return 5; }

 private:
  Answers answers_;
};

inline std::vector<Rank> ranks(std::initializer_list<std::int32_t> values) {
  std::vector<Rank> result;
  for (std::int32_t v : values) result.push_back(Rank{v});
  return result;
}

/// Everybody averages after every iteration and waits for everybody.
inline TestPlan::Answers allreduce() {
  return {.round =
              [](Version) {
                return Round{Round::Kind::sync, Trigger::all_arrived, Lateness::waits, {}};
              },
          .groups = {},
          .payload = scheduler::Payload::gradients};
}

/// The first that has finished ends everybody's update.
inline TestPlan::Answers nonblocking() {
  return {.round =
              [](Version) {
                return Round{Round::Kind::sync, Trigger::first_arrived, Lateness::abandons, {}};
              },
          .groups = {},
          .payload = scheduler::Payload::gradients};
}

/// Models, all, every `period`; `late` other than waits and a grace make workers report every iteration.
inline TestPlan::Answers local_sgd(std::int64_t period, Lateness late = Lateness::waits,
                                   std::optional<scheduler::Grace> grace = std::nullopt) {
  return {.round =
              [=](Version v) {
                if ((v.value + 1) % period != 0) return Round{};
                return Round{Round::Kind::sync, Trigger::all_arrived, late, grace};
              },
          .groups = {},
          .publishes_every_iteration = late != Lateness::waits || grace.has_value()};
}

/// Groups {even pairs} and {odd pairs} in turn for 4 workers, else all in one; a sync of all every `sync`.
inline TestPlan::Answers wagma(std::int64_t sync, Lateness late = Lateness::merges,
                               std::optional<scheduler::Grace> grace = std::nullopt,
                               std::function<std::vector<std::vector<Rank>>(Version)> groups = {}) {
  if (!groups) {
    groups = [](Version v) -> std::vector<std::vector<Rank>> {
      if (v.value % 2 == 0) return {ranks({0, 1}), ranks({2, 3})};
      return {ranks({0, 2}), ranks({1, 3})};
    };
  }
  const Lateness sync_late = late == Lateness::skips ? late : grace ? late : Lateness::waits;
  return {.round =
              [=](Version v) {
                if ((v.value + 1) % sync == 0) return Round{Round::Kind::sync, Trigger::all_arrived, sync_late, grace};
                return Round{Round::Kind::group, Trigger::first_arrived, late, {}};
              },
          .groups = groups,
          .publishes_every_iteration = late == Lateness::skips || grace.has_value()};
}

}  // namespace paceline::test
