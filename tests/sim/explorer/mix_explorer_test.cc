#include <gtest/gtest.h>

#include <iostream>

#include "tests/sim/explorer/mix_state.h"

// Every order of messages, steps and mixings of the mix engine, for three and four workers on two agents and three
// versions, with one death anywhere; and the defects around it that this finds.

namespace paceline::explorer {
namespace {

/// Column-stochastic: everybody keeps a part and sends the rest, in equal shares, to `hops` of the version.
class Pushes final : public MixPlan {
 public:
  using Hops = std::vector<std::vector<std::int32_t>>;
  Pushes(std::int32_t workers, Hops hops) : workers_(workers), hops_(std::move(hops)) {}

  std::vector<Share> row(Rank to, Version v) const override {
    std::vector<Share> shares;
    for (Rank from{0}; from.value < workers_; ++from.value) {
      const auto receivers_of = receivers(from, v);
      const double each = 1.0 / static_cast<double>(receivers_of.size() + 1);
      const bool takes = std::count(receivers_of.begin(), receivers_of.end(), to) > 0;
      if (from == to || takes) shares.push_back({from, each});
    }
    return shares;
  }
  std::vector<Rank> receivers(Rank from, Version v) const override {
    std::vector<Rank> all;
    for (const auto hop : hops_[static_cast<std::size_t>(v.value) % hops_.size()])
      all.push_back(Rank{(from.value + hop) % workers_});
    std::sort(all.begin(), all.end());
    return all;
  }

 private:
  std::int32_t workers_;
  Hops hops_;
};

auto pushes(std::int32_t workers, Pushes::Hops hops) {
  return [=]() -> std::unique_ptr<MixPlan> { return std::make_unique<Pushes>(workers, hops); };
}

std::vector<NodeId> on(std::initializer_list<std::int32_t> agents) {
  std::vector<NodeId> result;
  for (const std::int32_t n : agents) result.push_back(NodeId{n});
  return result;
}

MixModel ring_of_three() { return {"ring of 3", pushes(3, {{1}}), on({0, 0, 1})}; }
MixModel changing() { return {"changing neighbours of 4", pushes(4, {{1}, {2}}), on({0, 0, 1, 1})}; }
MixModel with_a_death(MixModel model) {
  model.name += ", a death";
  model.crash = true;
  return model;
}

class MixExplorer : public testing::TestWithParam<MixModel> {};

TEST_P(MixExplorer, KeepsItsPromisesInEveryInterleaving) {
  const MixWalk walked = walk(GetParam());
  std::cout << GetParam().name << ": " << walked.states << " states, " << walked.ends << " ends" << std::endl;
  EXPECT_EQ(walked.violation, "") << walked.way;
  EXPECT_GT(walked.states, 100U);
  EXPECT_GT(walked.ends, 0U);
}

INSTANTIATE_TEST_SUITE_P(Plans, MixExplorer,
                         testing::Values(ring_of_three(), with_a_death(ring_of_three()),
                                         MixModel{"everybody of 3", pushes(3, {{1, 2}}), on({0, 1, 1})},
                                         with_a_death({"everybody of 3", pushes(3, {{1, 2}}), on({0, 1, 1})}),
                                         MixModel{"ring of 4", pushes(4, {{1, 3}}), on({0, 1, 0, 1})}, changing(),
                                         with_a_death(changing())));

struct Case {
  const char* name;
  MixMutation mutation;
  MixModel model;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class MixMutated : public testing::TestWithParam<Case> {};

TEST_P(MixMutated, IsFound) {
  const MixWalk walked = walk(GetParam().model, GetParam().mutation);
  std::cout << GetParam().name << ": " << walked.states << " states, " << walked.violation << std::endl;
  EXPECT_NE(walked.violation, "") << "not found in " << walked.states << " states";
}

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
        Case{"KeepsTheShareOfTheDead", MixMutation::keeps_the_share_of_the_dead, with_a_death(ring_of_three())}),
    [](const auto& tested) { return std::string(tested.param.name); });

TEST(MixBorne, AContributionThatComesTwiceIsHarmless) {
  EXPECT_EQ(walk(ring_of_three(), MixMutation::delivers_twice).violation, "");
}

}  // namespace

void PrintTo(const MixModel& model, std::ostream* out) { *out << model.name; }

}  // namespace paceline::explorer
