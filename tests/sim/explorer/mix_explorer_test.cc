#include <gtest/gtest.h>

#include "tests/sim/explorer/explored.h"
#include "tests/sim/explorer/mix_models.h"

// Every order of messages, steps and mixings of the mix engine, for three and four workers on two agents and three
// versions, with one death or pause anywhere, or the loss of an agent; and the defects around it that this finds.

namespace paceline::explorer {
namespace {

MixModel ring_of_three() { return {"ring of 3", pushes(3, {{1}}), on({0, 0, 1})}; }
MixModel everybody() { return {"everybody of 3", pushes(3, {{1, 2}}), on({0, 1, 1})}; }
MixModel changing() { return {"changing neighbours of 4", pushes(4, {{1}, {2}}), on({0, 0, 1, 1})}; }
MixModel gives_first(MixModel model) {
  model.name = "gives first, " + model.name;
  model.gives_first = true;
  return model;
}
/// Rows add up, not columns.
MixModel rows(MixModel model) {
  model.name = "rows, " + model.name;
  model.columns_add_up = false;
  return model;
}
MixModel until(Version last, MixModel model) {
  model.last = last;
  return model;
}

class MixExplorer : public testing::TestWithParam<MixModel> {};

TEST_P(MixExplorer, KeepsItsPromisesInEveryInterleaving) { expect_kept(GetParam()); }

INSTANTIATE_TEST_SUITE_P(Plans, MixExplorer,
                         testing::Values(ring_of_three(), with_a_death(ring_of_three()), everybody(),
                                         with_a_death(everybody()),
                                         MixModel{"ring of 4", pushes(4, {{1, 3}}), on({0, 1, 0, 1})}, changing(),
                                         with_a_death(changing()), with_a_pause(ring_of_three()),
                                         with_a_pause(rows(everybody())), gives_first(rows(ring_of_three())),
                                         with_a_death(gives_first(rows(ring_of_three())))));

std::vector<MixModel> losing() {
  std::vector<MixModel> all;
  for (const Loss loss : {Loss::crash, Loss::pause}) {
    for (const std::int32_t nodes : {2, 3}) {
      for (const MixModel& model : {ring(nodes), rows(ring(nodes)), alike(nodes)})
        all.push_back(with(loss, nodes == 2 ? until(Version{2}, model) : model));
    }
    all.push_back(with(loss, gives_first(rows(ring()))));
    all.push_back(with(loss, with_a_death(alike())));
  }
  return all;
}
INSTANTIATE_TEST_SUITE_P(WhereAnAgentIsLost, MixExplorer, testing::ValuesIn(losing()));

struct Case {
  const char* name;
  MixMutation mutation;
  MixModel model;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class MixMutated : public testing::TestWithParam<Case> {};

TEST_P(MixMutated, IsFound) { expect_found(GetParam()); }

INSTANTIATE_TEST_SUITE_P(
    Shells, MixMutated,
    testing::Values(
        Case{"LosesAContribution", MixMutation::loses_a_contribution, ring_of_three()},
        Case{"Overtakes", MixMutation::overtakes, changing()},
        Case{"ForgetsTheDeadElsewhere", MixMutation::forgets_the_dead_elsewhere, with_a_death(ring_of_three())},
        Case{"ForgetsAContributionOfTheDead", MixMutation::forgets_a_contribution_of_the_dead,
             with_a_death(ring_of_three())},
        Case{"DropsAMix", MixMutation::drops_a_mix, ring_of_three()},
        Case{"MixesTwice", MixMutation::mixes_twice, ring_of_three()},
        Case{"IgnoresReleases", MixMutation::ignores_releases, ring_of_three()},
        Case{"ReleasesAtOnce", MixMutation::releases_at_once, ring_of_three()},
        Case{"TakesAnotherVersion", MixMutation::takes_another_version, ring_of_three()},
        Case{"PlanDiffersOnOneAgent", MixMutation::plan_differs_on_one_agent, changing()},
        Case{"KeepsTheShareOfTheDead", MixMutation::keeps_the_share_of_the_dead, with_a_death(ring_of_three())},
        Case{"ComplainsToNobody", MixMutation::complains_to_nobody, with_a_pause(ring_of_three())}),
    [](const auto& tested) { return std::string(tested.param.name); });

INSTANTIATE_TEST_SUITE_P(
    Views, MixMutated,
    testing::Values(
        Case{"PassesNothingOn", MixMutation::passes_nothing_on, with(Loss::crash, alike(3))},
        Case{"KeepsNothingToPassOn", MixMutation::keeps_nothing_to_pass_on, with(Loss::crash, alike(3))},
        Case{"DoesNotWaitForTheFlush", MixMutation::does_not_wait_for_the_flush, with(Loss::crash, alike(3))},
        Case{"TakesFromTheLost", MixMutation::takes_from_the_lost, with(Loss::crash, alike(3))},
        Case{"TakesFromTheLostThatGoesOn", MixMutation::takes_from_the_lost, with(Loss::pause, alike(3))},
        Case{"GoesOnWaitingForTheLost", MixMutation::goes_on_waiting_for_the_lost, with(Loss::crash, ring())}),
    [](const auto& tested) { return std::string(tested.param.name); });

TEST(MixBorne, AContributionThatComesTwiceIsHarmless) {
  EXPECT_EQ(walk(ring_of_three(), MixMutation::delivers_twice).violation, "");
}

/// Each mixes what reaches it: two may have been told different things of a lost agent.
TEST(MixBorne, WhereRowsAreNotAlikeNothingNeedsToBePassedOn) {
  EXPECT_EQ(walk(with(Loss::crash, ring(3)), MixMutation::passes_nothing_on).violation, "");
}

}  // namespace

void PrintTo(const MixModel& model, std::ostream* out) { *out << model.name; }

}  // namespace paceline::explorer
