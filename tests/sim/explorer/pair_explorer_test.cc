#include <gtest/gtest.h>

#include "tests/sim/explorer/explored.h"
#include "tests/sim/explorer/model_parts.h"
#include "tests/sim/explorer/pair_state.h"

// Every order of iterations, messages and averagings of the pair engine, for two and three workers on as many agents or
// fewer, with a pause, a death or the loss of an agent anywhere; and the defects around it that this finds.

namespace paceline::explorer {
namespace {

/// Everybody meets the next one, and at every other iteration the one after that.
std::optional<Rank> next_of_three(Rank rank, Version t) {
  return Rank{static_cast<std::int32_t>((rank.value + 1 + t.value % 2) % 3)};
}
std::optional<Rank> the_other(Rank rank, Version) { return Rank{1 - rank.value}; }
/// All meet the last one, which meets nobody.
std::optional<Rank> the_last(Rank rank, Version) { return rank.value == 2 ? std::nullopt : std::optional(Rank{2}); }

PairModel two() { return {"two", the_other, on({0, 1}), 2, Version{2}}; }
PairModel two_and_one() { return {"two and one", next_of_three, on({0, 0, 1}), 2}; }
PairModel one_and_two() { return {"one and two", next_of_three, on({0, 1, 1}), 2}; }
PairModel three() { return {"three", next_of_three, on({0, 1, 2}), 3}; }
/// The lost one has the lower rank.
PairModel two_turned() { return {"two, turned", the_other, on({1, 0}), 2, Version{2}}; }
PairModel three_turned() { return {"three, turned", next_of_three, on({2, 0, 1}), 3}; }
PairModel at_the_last() { return {"at the last", the_last, on({0, 1, 2}), 3}; }

class PairExplorer : public testing::TestWithParam<PairModel> {};

TEST_P(PairExplorer, KeepsItsPromisesInEveryInterleaving) { expect_kept(GetParam()); }

std::vector<PairModel> all() {
  std::vector<PairModel> models;
  for (const PairModel& model : {two(), two_and_one(), one_and_two(), three(), at_the_last()}) {
    models.push_back(model);
    models.push_back(with_a_death(model));
    models.push_back(with_a_pause(model));
    models.push_back(with(Loss::crash, model));
    models.push_back(with(Loss::pause, model));
  }
  for (const Loss loss : {Loss::crash, Loss::pause})
    for (const PairModel& model : {two_turned(), three_turned()}) models.push_back(with(loss, model));
  return models;
}
INSTANTIATE_TEST_SUITE_P(Pairs, PairExplorer, testing::ValuesIn(all()));

struct Case {
  const char* name;
  PairMutation mutation;
  PairModel model;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class PairMutated : public testing::TestWithParam<Case> {};

TEST_P(PairMutated, IsFound) { expect_found(GetParam()); }

INSTANTIATE_TEST_SUITE_P(
    Shells, PairMutated,
    testing::Values(Case{"LosesAMessage", PairMutation::loses_a_message, two()},
                    Case{"ForgetsTheDead", PairMutation::forgets_the_dead, with_a_death(two_and_one())},
                    Case{"GivesTheMeanToOne", PairMutation::gives_the_mean_to_one, two()},
                    Case{"StepsTwice", PairMutation::steps_twice, two()},
                    Case{"EndsBeforeItIsSettled", PairMutation::ends_before_it_is_settled, with_a_death(three())},
                    Case{"WaitsForTheFrozen", PairMutation::waits_for_the_frozen, with_a_pause(two())},
                    Case{"TakesFromTheLost", PairMutation::takes_from_the_lost, with(Loss::crash, two())},
                    Case{"GoesOnWaitingForTheLost", PairMutation::goes_on_waiting_for_the_lost,
                         with(Loss::crash, two())}),
    [](const auto& tested) { return std::string(tested.param.name); });

/// There is nothing that all must have of a lost agent.
TEST(PairBorne, WhoDoesNotWaitForTheFlushDoesNoHarm) {
  const Walk walked = walk(with(Loss::crash, three()), PairMutation::does_not_wait_for_the_flush);
  EXPECT_EQ(walked.violation, "") << walked.way;
}

TEST(PairBorne, AMessageThatOvertakesAnotherDoesNoHarm) {
  const Walk walked = walk(three(), PairMutation::overtakes);
  EXPECT_EQ(walked.violation, "") << walked.way;
}

}  // namespace

void PrintTo(const PairModel& model, std::ostream* out) { *out << model.name; }

}  // namespace paceline::explorer
