#include <gtest/gtest.h>

#include "tests/sim/explorer/explored.h"
#include "tests/sim/explorer/mix_models.h"

// Batches that the first worker ends, over neighbours: every order of mini-batches, signals, counts, graces and mixings
// of the batch engine and the mix engine together, with a pause, a death or the loss of an agent anywhere.

namespace paceline::explorer {
namespace {

using Weight = BatchEngine::Weight;

MixModel graces(MixModel model) {
  model.name += ", any grace";
  model.any_grace = true;
  return model;
}
MixModel until(Version last, MixModel model) {
  model.last = last;
  return model;
}

class BatchExplorer : public testing::TestWithParam<MixModel> {};

TEST_P(BatchExplorer, KeepsItsPromisesInEveryInterleaving) { expect_kept(GetParam()); }

std::vector<MixModel> whole() {
  std::vector<MixModel> all;
  for (const Weight weight : {Weight::share, Weight::of_all}) {
    for (const bool drops : {true, false}) {
      const MixModel model = batches(ring(), 2, weight, drops);
      const MixModel shorter = batches(ring(), drops ? 1 : 2, weight, drops);
      all.push_back(drops ? graces(weight == Weight::of_all ? shorter : model) : model);
      all.push_back(with_a_death(shorter));
      all.push_back(with_a_pause(shorter));
    }
  }
  return all;
}
INSTANTIATE_TEST_SUITE_P(WhereAllStay, BatchExplorer, testing::ValuesIn(whole()));

std::vector<MixModel> losing() {
  std::vector<MixModel> all;
  for (const Loss loss : {Loss::crash, Loss::pause}) {
    for (const Weight weight : {Weight::share, Weight::of_all})
      for (const bool drops : {true, false}) {
        const std::int32_t n = weight == Weight::of_all && drops ? 1 : 2;
        all.push_back(with(loss, batches(ring(), n, weight, drops)));
      }
    const bool drops = loss == Loss::crash;  // Else half a million states.
    all.push_back(with(loss, until(Version{0}, batches(apart(3), 1, Weight::of_all, drops))));
    all.push_back(with(loss, until(Version{0}, batches(ring(3), 1, Weight::of_all, false))));
    all.push_back(with(loss, until(Version{0}, batches(ring(3), 1))));
  }
  return all;
}
INSTANTIATE_TEST_SUITE_P(WhereAnAgentIsLost, BatchExplorer, testing::ValuesIn(losing()));

struct Case {
  const char* name;
  MixMutation mutation;
  MixModel model;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class BatchMutated : public testing::TestWithParam<Case> {};

TEST_P(BatchMutated, IsFound) { expect_found(GetParam()); }

const MixModel kLostOfThree = with(Loss::crash, until(Version{0}, batches(apart(3), 1, Weight::of_all)));

INSTANTIATE_TEST_SUITE_P(
    Shells, BatchMutated,
    testing::Values(
        Case{"TellsNoCounts", MixMutation::tells_no_counts, batches(ring(), 2, Weight::of_all)},
        Case{"ComplainsToNobody", MixMutation::complains_to_nobody,
             with_a_pause(batches(ring(), 1, Weight::of_all, false))},
        Case{"PassesNobodyOver", MixMutation::passes_nobody_over, with_a_pause(batches(ring(), 1, Weight::of_all))},
        Case{"CountsWhatWasNotDone", MixMutation::counts_what_was_not_done, batches(ring(), 2, Weight::share, false)},
        Case{"StepsTwice", MixMutation::steps_twice, batches(ring(), 2)},
        Case{"LosesAContribution", MixMutation::loses_a_contribution, batches(ring(), 1)},
        Case{"PassesNothingOn", MixMutation::passes_nothing_on, kLostOfThree},
        Case{"DoesNotWaitForTheFlush", MixMutation::does_not_wait_for_the_flush, kLostOfThree},
        Case{"TakesFromTheLost", MixMutation::takes_from_the_lost, kLostOfThree},
        Case{"GoesOnWaitingForTheLost", MixMutation::goes_on_waiting_for_the_lost, kLostOfThree}),
    [](const auto& tested) { return std::string(tested.param.name); });

/// Who hears nothing of a signal does all of its own.
TEST(BatchBorne, ASignalThatIsLostIsHarmless) {
  EXPECT_EQ(walk(batches(ring(), 2), MixMutation::loses_a_signal).violation, "");
}

}  // namespace

void PrintTo(const MixModel& model, std::ostream* out) { *out << model.name; }

}  // namespace paceline::explorer
