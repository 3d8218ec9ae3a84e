#pragma once

#include <utility>
#include <vector>

#include "tests/sim/explorer/model_parts.h"
#include "tests/sim/explorer/round_state.h"

namespace paceline::explorer {

inline std::vector<std::vector<Rank>> all_three(Version) { return {test::ranks({0, 1, 2})}; }
inline std::vector<std::vector<Rank>> two_and_one(Version) { return {test::ranks({0, 1}), test::ranks({2})}; }
inline std::vector<std::vector<Rank>> changing(Version v) {
  return v.value % 2 == 0 ? two_and_one(v) : std::vector{test::ranks({0, 2}), test::ranks({1})};
}

/// All wait for the mini-batches under way when the first has done all of its own.
inline test::TestPlan::Answers finishing() {
  return {.round =
              [](Version) {
                return test::Round{test::Round::Kind::sync, test::Trigger::all_arrived, test::Lateness::finishes, {}};
              },
          .groups = {},
          .payload = scheduler::Payload::gradients};
}

/// Gradients of those who are there; models of all every `sync`. The initiators take turns.
inline test::TestPlan::Answers eager(test::Trigger trigger, test::Lateness late, std::int32_t quorum = 0,
                                     std::int64_t sync = 3) {
  return {.round =
              [=](Version v) {
                test::Round round{test::Round::Kind::sync, trigger, late, {}};
                round.payload = scheduler::Payload::gradients;
                round.initiator = Rank{static_cast<std::int32_t>(v.value % 3)};
                round.quorum = quorum;
                if ((v.value + 1) % sync == 0) round = {test::Round::Kind::sync};
                return round;
              },
          .groups = {},
          .payload = scheduler::Payload::gradients};
}

/// Models, every two iterations: a quorum and a second of grace.
inline test::TestPlan::Answers decoupled(std::int32_t quorum) {
  auto answers = test::local_sgd(2, test::Lateness::skips, scheduler::Grace{.fixed = std::chrono::seconds(1)});
  answers.round = [given = answers.round, quorum](Version v) {
    test::Round round = given(v);
    round.trigger = test::Trigger::quorum;
    round.quorum = quorum;
    return round;
  };
  return answers;
}

/// One initiator's arrivals start groups; nobody is waited for before the sync.
inline test::TestPlan::Answers started_by_one(Rank initiator, std::int64_t sync,
                                              std::function<std::vector<std::vector<Rank>>(Version)> groups) {
  auto answers = test::wagma(sync, test::Lateness::merges, {}, std::move(groups));
  answers.round = [given = answers.round, initiator](Version v) {
    test::Round round = given(v);
    if (round.kind == test::Round::Kind::group) {
      round.trigger = test::Trigger::initiator;
      round.initiator = initiator;
    }
    return round;
  };
  return answers;
}

/// As wagma; the late merge with the version that they missed.
inline test::TestPlan::Answers own_version(std::int64_t sync,
                                           std::function<std::vector<std::vector<Rank>>(Version)> groups) {
  auto answers = test::wagma(sync, test::Lateness::merges, {}, std::move(groups));
  answers.round = [given = answers.round](Version v) {
    test::Round round = given(v);
    round.merges_own_version = round.kind == test::Round::Kind::group;
    return round;
  };
  return answers;
}

}  // namespace paceline::explorer
