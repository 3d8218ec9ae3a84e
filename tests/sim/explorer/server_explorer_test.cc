#include <gtest/gtest.h>

#include "tests/sim/explorer/explored.h"
#include "tests/sim/explorer/model_parts.h"
#include "tests/sim/explorer/server_shell.h"

// Every order of pushes, pulls and averagings of the server engine, for three workers on two and three agents, with a
// bound and without, with a pause, a death or the loss of an agent anywhere; and the defects around it that this finds.

namespace paceline::explorer {
namespace {

ServerModel two_agents(std::optional<std::int64_t> bound) {
  return {std::string("two agents") + (bound ? ", bound " + std::to_string(*bound) : ""), on({0, 0, 1}), 2, bound,
          Version{bound == 1 ? 2 : 1}};
}
ServerModel three_agents(std::optional<std::int64_t> bound) {
  return {std::string("three agents") + (bound ? ", bound " + std::to_string(*bound) : ""), on({0, 1, 2}), 3, bound};
}

class ServerExplorer : public testing::TestWithParam<ServerModel> {};

TEST_P(ServerExplorer, KeepsItsPromisesInEveryInterleaving) { expect_kept(GetParam()); }

std::vector<ServerModel> all() {
  std::vector<ServerModel> models;
  for (const ServerModel& model : {two_agents({}), two_agents(0), two_agents(1), three_agents(0)}) {
    models.push_back(model);
    models.push_back(with_a_death(model));
    models.push_back(with_a_pause(model));
    models.push_back(with(Loss::crash, model));
    models.push_back(with(Loss::pause, model));
  }
  return models;
}
INSTANTIATE_TEST_SUITE_P(Bounds, ServerExplorer, testing::ValuesIn(all()));

struct Case {
  const char* name;
  ServerMutation mutation;
  ServerModel model;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class ServerMutated : public testing::TestWithParam<Case> {};

TEST_P(ServerMutated, IsFound) { expect_found(GetParam()); }

INSTANTIATE_TEST_SUITE_P(Shells, ServerMutated,
                         testing::Values(Case{"LosesAPush", ServerMutation::loses_a_push, two_agents(1)},
                                         Case{"AddsAPushTwice", ServerMutation::adds_a_push_twice, two_agents({})},
                                         Case{"ForgetsTheDeadElsewhere", ServerMutation::forgets_the_dead_elsewhere,
                                              with_a_death(two_agents(0))},
                                         Case{"LetsAllPull", ServerMutation::lets_all_pull, three_agents(0)},
                                         Case{"ComplainsToNobody", ServerMutation::complains_to_nobody,
                                              with_a_pause(two_agents(0))},
                                         Case{"GoesOnWaitingForTheLost", ServerMutation::goes_on_waiting_for_the_lost,
                                              with(Loss::crash, two_agents(0))}),
                         [](const auto& tested) { return std::string(tested.param.name); });

/// What the server has not added when it goes on does not count, wherever it stands.
TEST(ServerBorne, WhoStillTakesFromTheLostDoesNoHarm) {
  const Walk walked = walk(with(Loss::crash, two_agents(0)), ServerMutation::takes_from_the_lost);
  EXPECT_EQ(walked.violation, "") << walked.way;
}

}  // namespace

void PrintTo(const ServerModel& model, std::ostream* out) { *out << model.name; }

}  // namespace paceline::explorer
