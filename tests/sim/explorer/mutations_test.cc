#include <gtest/gtest.h>

#include <iostream>

#include "tests/sim/explorer/explorer.h"
#include "tests/sim/explorer/models.h"

// What the explorer is worth: defects that are put into the shells, the network and the plan around the core must be
// found, each as a broken promise or as a state from which the job cannot end. Those that a core must bear must not.

namespace paceline::explorer {
namespace {

using test::Lateness;
using test::Trigger;
using AtOnce = Model::AtOnce;

const auto kAllreduce = test::allreduce();
const auto kMergeMutation = test::wagma(2, Lateness::merges, {}, all_three);
const auto kSolo = eager(Trigger::first_arrived, Lateness::accumulates, 0, 2);
const auto kQuorum = eager(Trigger::quorum, Lateness::accumulates, 2);

Model on_two_agents(test::TestPlan::Answers answers, Version last = Version{1}) {
  return {"", std::move(answers), on({0, 1, 1}), 2, last};
}
Model quick(test::TestPlan::Answers answers, Version last = Version{2}) {
  return {"", std::move(answers), on({0, 1, 1}), 2, last, AtOnce::everything};
}
Model with_a_death(Model model) {
  model.pause = false;
  model.crash = true;
  return model;
}
Model with_a_loss(test::TestPlan::Answers answers) {
  Model model{"", std::move(answers), on({0, 1, 2}), 3, Version{1}, AtOnce::everything};
  model.pause = false;
  model.loss = true;
  return model;
}

struct Case {
  const char* name;
  const char* spoils;
  Mutation mutation;
  Model model;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class Mutated : public testing::TestWithParam<Case> {};

TEST_P(Mutated, IsFound) {
  const Case& c = GetParam();
  const Walk walked = walk(c.model, c.mutation);
  std::cout << c.name << " (" << c.spoils << "): " << walked.states << " states, " << walked.violation << std::endl;
  EXPECT_NE(walked.violation, "") << "not found in " << walked.states << " states";
  EXPECT_EQ(walk(c.model).violation, "") << "the same without the defect";
}

INSTANTIATE_TEST_SUITE_P(
    Shells, Mutated,
    testing::Values(
        Case{"DropsASeal", "a Seal is never carried out", Mutation::drops_a_seal, on_two_agents(kMergeMutation)},
        Case{"AnswersASealUnpinned", "Execute comes before the windows are sealed", Mutation::answers_a_seal_unpinned,
             on_two_agents(kAllreduce)},
        Case{"DoesNotPin", "what is published later gets into the round", Mutation::does_not_pin,
             Model{"", kMergeMutation, on({0, 0, 0}), 1, Version{1}}},
        Case{"ReusesAPinnedBuffer", "a contribution changes when its partial is out", Mutation::reuses_a_pinned_buffer,
             on_two_agents(kMergeMutation)},
        Case{"CallsAllFresh", "older publications are taken for this version's", Mutation::calls_all_fresh,
             on_two_agents(kMergeMutation)},
        Case{"GivesAGradientTwice", "a gradient stays in the window when it was given",
             Mutation::gives_a_gradient_twice, quick(kSolo, Version{1})},
        Case{"ExecutesTwice", "a version is executed twice", Mutation::executes_twice, on_two_agents(kMergeMutation)},
        Case{"ReportsBeforeItReduces", "on_executed comes before the reduction", Mutation::reports_before_it_reduces,
             on_two_agents(kAllreduce)},
        Case{"RetainsNothing", "the late find no sum to merge with", Mutation::retains_nothing,
             on_two_agents(kMergeMutation)},
        Case{"DropsAMerge", "a Merge is never carried out", Mutation::drops_a_merge, on_two_agents(kMergeMutation)},
        Case{"MergesWithAnOlderSum", "a late worker merges with a version before its own",
             Mutation::merges_with_an_older_sum, on_two_agents(kMergeMutation)},
        Case{"MergesWithTheNewestSum", "not with the version that it missed, as was asked",
             Mutation::merges_with_the_newest_sum,
             Model{"", own_version(3, all_three), on({0, 0, 0}), 1, Version{2}, AtOnce::seals}},
        Case{"LosesALateGradient", "a late gradient that is to count later does not", Mutation::loses_a_late_gradient,
             quick(kSolo, Version{1})},
        Case{"LosesAVerdict", "a worker is never told", Mutation::loses_a_verdict, on_two_agents(kAllreduce)},
        Case{"GivesAVerdictTwice", "a worker is told twice", Mutation::gives_a_verdict_twice,
             on_two_agents(kAllreduce)},
        Case{"GivesAVerdictToAnother", "its neighbour is told", Mutation::gives_a_verdict_to_another,
             on_two_agents(kAllreduce)},
        Case{"ForgetsToAbandon", "workers are not told that their update is over", Mutation::forgets_to_abandon,
             quick(test::nonblocking(), Version{1})},
        Case{"ForgetsToLetFinish", "nor that they are to finish", Mutation::forgets_to_abandon, quick(finishing())},
        Case{"ForgetsTheDead", "on_gone is not called", Mutation::forgets_the_dead, with_a_death(quick(kAllreduce))},
        Case{"IgnoresDeadlines", "tick is not called", Mutation::ignores_deadlines, quick(kAllreduce)},
        Case{"IsImpatient", "the clock runs fast", Mutation::is_impatient, quick(kAllreduce)}),
    [](const auto& tested) { return std::string(tested.param.name); });

INSTANTIATE_TEST_SUITE_P(
    Networks, Mutated,
    testing::Values(Case{"LosesAPartial", "a partial sum does not arrive", Mutation::loses_a_partial,
                         on_two_agents(kMergeMutation)},
                    Case{"MixesUpPartials", "the sum of another version arrives", Mutation::mixes_up_partials,
                         on_two_agents(kAllreduce)},
                    Case{"LosesActivations", "no activation arrives", Mutation::loses_activations,
                         Model{"", started_by_one(Rank{0}, 2, two_and_one), on({0, 0, 1}), 2, Version{1}}},
                    Case{"PassesNothingOn", "what a lost agent gave is not passed on", Mutation::passes_nothing_on,
                         with_a_loss(kAllreduce)},
                    Case{"LosesAnArrival", "a worker's report does not arrive", Mutation::loses_an_arrival,
                         on_two_agents(kAllreduce)},
                    Case{"LosesACount", "an arrival elsewhere does not count", Mutation::loses_a_count, quick(kQuorum)},
                    Case{"CountsTwice", "an arrival counts for two", Mutation::counts_twice, quick(kQuorum)},
                    Case{"HidesWhoLeft", "other agents do not hear of a death", Mutation::hides_who_left,
                         with_a_death(quick(eager(Trigger::initiator, Lateness::accumulates)))}),
    [](const auto& tested) { return std::string(tested.param.name); });

INSTANTIATE_TEST_SUITE_P(Plans, Mutated,
                         testing::Values(Case{"SkipsAVersionOnOneAgent", "agents do not agree which versions there are",
                                              Mutation::skips_a_version_on_one_agent,
                                              quick(kMergeMutation, Version{1})},
                                         Case{"GroupsDifferOnOneAgent", "agents do not agree who averages together",
                                              Mutation::groups_differ_on_one_agent,
                                              quick(test::wagma(2, Lateness::merges, {}, changing), Version{1})}),
                         [](const auto& tested) { return std::string(tested.param.name); });

class Borne : public testing::TestWithParam<Case> {};

TEST_P(Borne, IsHarmless) {
  const Case& c = GetParam();
  const Walk walked = walk(c.model, c.mutation);
  std::cout << c.name << " (" << c.spoils << "): " << walked.states << " states" << std::endl;
  EXPECT_EQ(walked.violation, "") << walked.way;
}

INSTANTIATE_TEST_SUITE_P(Networks, Borne,
                         testing::Values(Case{"DuplicatesPartials", "partial sums arrive twice",
                                              Mutation::duplicates_partials, quick(kMergeMutation, Version{1})},
                                         Case{"DuplicatesActivations", "activations arrive twice",
                                              Mutation::duplicates_activations, quick(kMergeMutation, Version{1})}),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace paceline::explorer
