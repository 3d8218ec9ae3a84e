#include "tests/sim/explorer/explorer.h"

#include <gtest/gtest.h>

#include <chrono>
#include <iostream>

#include "tests/sim/explorer/models.h"

// Every interleaving of the round core for three or four workers, up to three versions, one pause or one death. The
// same walks find what is broken on purpose: mutations_test.cc.

namespace paceline::explorer {
namespace {

using test::Lateness;
using test::Trigger;
using AtOnce = Model::AtOnce;

class Explorer : public testing::TestWithParam<Model> {};

TEST_P(Explorer, KeepsItsPromisesInEveryInterleaving) {
  const auto begin = std::chrono::steady_clock::now();
  const Walk walked = walk(GetParam());
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  std::cout << GetParam().name << ": " << walked.states << " states, " << walked.ends << " ends, " << took.count()
            << " s" << std::endl;
  EXPECT_EQ(walked.violation, "") << walked.way;
  EXPECT_GT(walked.states, 100U);
  EXPECT_GT(walked.ends, 0U);
}

std::string name_of(const testing::TestParamInfo<Model>& tested) {
  std::string name = tested.param.name;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return name;
}

constexpr scheduler::Grace kGrace{.fixed = std::chrono::seconds(1)};
const auto kMerge = test::wagma(3, Lateness::merges, {}, all_three);
const auto kSkip = test::wagma(3, Lateness::skips, {}, all_three);

std::vector<Model> waiting() {
  const auto allreduce = test::allreduce();
  return {{"allreduce 1 agent", allreduce, on({0, 0, 0})},
          {"allreduce 2 agents", allreduce, on({0, 0, 1}), 2},
          {"allreduce 3 agents", allreduce, on({0, 1, 2}), 3, Version{2}, AtOnce::everything},
          {"allreduce 4 workers 2 agents", allreduce, on({0, 0, 1, 1}), 2, Version{2}, AtOnce::everything},
          {"allreduce death", allreduce, on({0, 0, 1}), 2, Version{2}, AtOnce::seals, false, true},
          {"local sgd period 2", test::local_sgd(2), on({0, 0, 1}), 2, Version{3}, AtOnce::seals},
          {"finishes 2 agents", finishing(), on({0, 0, 1}), 2, Version{2}, AtOnce::seals}};
}
INSTANTIATE_TEST_SUITE_P(WhereAllAreWaitedFor, Explorer, testing::ValuesIn(waiting()), name_of);

std::vector<Model> merging() {
  return {{"merge 1 agent", kMerge, on({0, 0, 0})},
          {"merge 2 agents", kMerge, on({0, 1, 1}), 2, Version{2}, AtOnce::everything},
          {"merge groups", test::wagma(2, Lateness::merges, {}, two_and_one), on({0, 1, 1}), 2, Version{1}},
          {"merge changing groups", test::wagma(3, Lateness::merges, {}, changing), on({0, 1, 1}), 2, Version{2},
           AtOnce::everything},
          {"merge death", kMerge, on({0, 1, 1}), 2, Version{2}, AtOnce::everything, false, true},
          {"merge own version", own_version(3, all_three), on({0, 0, 0}), 1, Version{2}, AtOnce::seals},
          {"merge 3 agents", test::wagma(2, Lateness::merges, {}, all_three), on({0, 1, 2}), 3, Version{1},
           AtOnce::everything},
          {"merge 4 workers", test::wagma(2), on({0, 0, 1, 1}), 2, Version{1}, AtOnce::everything}};
}
INSTANTIATE_TEST_SUITE_P(WhereTheLateMerge, Explorer, testing::ValuesIn(merging()), name_of);

std::vector<Model> skipping() {
  return {
      {"skip 1 agent", kSkip, on({0, 0, 0})},
      {"skip 2 agents", kSkip, on({0, 1, 1}), 2, Version{2}, AtOnce::everything},
      {"skip 3 agents", test::wagma(2, Lateness::skips, {}, all_three), on({0, 1, 2}), 3, Version{1},
       AtOnce::everything},
      {"skip 4 workers", test::wagma(2, Lateness::skips), on({0, 0, 1, 1}), 2, Version{1}, AtOnce::everything},
      {"skip death", kSkip, on({0, 1, 1}), 2, Version{2}, AtOnce::everything, false, true},
      {"merge grace", test::wagma(2, Lateness::merges, kGrace, all_three), on({0, 0, 1}), 2, Version{1},
       AtOnce::everything, true, false, true},
      {"skip grace groups", test::wagma(2, Lateness::skips, kGrace, two_and_one), on({0, 0, 1}), 2, Version{1},
       AtOnce::everything, true, false, true},
      {"skip quorum grace", decoupled(2), on({0, 1, 1}), 2, Version{1}, AtOnce::everything, false, false, true},
      {"skip quorum of one", decoupled(1), on({0, 0, 1}), 2, Version{1}, AtOnce::everything, false, false, true},
      {"skip quorum grace death", decoupled(2), on({0, 1, 1}), 2, Version{1}, AtOnce::everything, false, true, true},
      {"skip grace", test::local_sgd(2, Lateness::skips, kGrace), on({0, 1, 1}), 2, Version{1}, AtOnce::everything,
       false, false, true}};
}
INSTANTIATE_TEST_SUITE_P(WhereTheLateSkip, Explorer, testing::ValuesIn(skipping()), name_of);

std::vector<Model> gradients() {
  const auto solo = eager(Trigger::first_arrived, Lateness::accumulates);
  return {
      {"abandons 1 agent", test::nonblocking(), on({0, 0, 0}), 1, Version{2}, AtOnce::everything},
      {"abandons parts", test::nonblocking(), on({0, 0, 0}), 1, Version{1}, AtOnce::seals, true, false, false, true},
      {"abandons 2 agents", test::nonblocking(), on({0, 1, 1}), 2, Version{1}},
      {"abandons death", test::nonblocking(), on({0, 1, 1}), 2, Version{1}, AtOnce::everything, false, true},
      {"accumulates quorum death", eager(Trigger::quorum, Lateness::accumulates, 2), on({0, 1, 1}), 2, Version{2},
       AtOnce::everything, false, true},
      {"accumulates solo", solo, on({0, 1, 1}), 2, Version{2}, AtOnce::everything},
      {"accumulates solo death", solo, on({0, 1, 1}), 2, Version{2}, AtOnce::everything, false, true},
      {"accumulates initiator", eager(Trigger::initiator, Lateness::accumulates), on({0, 1, 1}), 2, Version{2},
       AtOnce::everything},
      {"accumulates initiator death", eager(Trigger::initiator, Lateness::accumulates), on({0, 1, 1}), 2, Version{2},
       AtOnce::everything, false, true},
      {"drops everybody's quorum death", eager(Trigger::quorum, Lateness::drops, 3), on({0, 1, 2}), 3, Version{1},
       AtOnce::everything, false, true},
      {"accumulates quorum", eager(Trigger::quorum, Lateness::accumulates, 2), on({0, 1, 1}), 2, Version{2},
       AtOnce::everything},
      {"accumulates quorum 3 agents", eager(Trigger::quorum, Lateness::accumulates, 2, 2), on({0, 1, 2}), 3, Version{1},
       AtOnce::everything},
      {"drops solo", eager(Trigger::first_arrived, Lateness::drops), on({0, 0, 0}), 1, Version{2}},
      {"drops initiator", eager(Trigger::initiator, Lateness::drops), on({0, 1, 1}), 2, Version{2}, AtOnce::everything},
      {"drops quorum", eager(Trigger::quorum, Lateness::drops, 3), on({0, 1, 1}), 2, Version{2}, AtOnce::everything}};
}
INSTANTIATE_TEST_SUITE_P(WhereGradientsAreGiven, Explorer, testing::ValuesIn(gradients()), name_of);

/// The last agent is lost somewhere; `pause`: and one worker stands still, of that agent or another one.
Model lost(Model model, bool pause = false) {
  model.name = "lost " + model.name + (pause ? " and a pause" : "");
  model.at_once = AtOnce::everything;
  model.pause = pause;
  model.loss = true;
  return model;
}

std::vector<Model> losing() {
  const auto two = on({0, 0, 1}), three = on({0, 1, 2});
  const Model allreduce{"allreduce", test::allreduce(), two, 2},
      merge{"merge", test::wagma(2, Lateness::merges, {}, all_three), two, 2, Version{1}},
      skip{"skip", test::wagma(2, Lateness::skips, {}, all_three), two, 2, Version{1}},
      groups{"changing groups", test::wagma(3, Lateness::merges, {}, changing), two, 2},
      abandons{"abandons", test::nonblocking(), two, 2, Version{1}},
      solo{"solo", eager(Trigger::first_arrived, Lateness::accumulates, 0, 2), two, 2, Version{1}},
      quorum{"quorum", eager(Trigger::quorum, Lateness::accumulates, 2, 2), two, 2, Version{1}},
      initiator{"initiator", eager(Trigger::initiator, Lateness::drops, 0, 2), two, 2, Version{1}},
      grace{"grace", test::local_sgd(2, Lateness::skips, kGrace), two, 2, Version{1}};
  std::vector<Model> all;
  for (const Model& model : {allreduce, merge, skip, groups, abandons, solo, quorum, initiator, grace}) {
    all.push_back(lost(model));
    all.push_back(lost(model, true));
    Model of_three = model;
    of_three.name += " of three";
    of_three.node_of = three;
    of_three.nodes = 3;
    of_three.last = Version{model.name == "abandons" ? 0 : 1};  // Of two updates: 18 million states, four minutes.
    all.push_back(lost(of_three));
  }
  for (Model model : std::vector(all)) {  // Who counts a quorum is lost.
    if (model.name.find("quorum") == std::string::npos) continue;
    model.name = "first " + model.name;
    model.loses_first = true;
    if (model.nodes == 2) model.node_of = on({0, 1, 1});
    all.push_back(model);
  }
  return all;
}
INSTANTIATE_TEST_SUITE_P(WhereAnAgentIsLost, Explorer, testing::ValuesIn(losing()), name_of);

/// A worker dies somewhere, and another process comes in its place at some time, or never.
std::vector<Model> returning() {
  const auto here = on({0, 0, 0}), two = on({0, 0, 1}), alone = on({0, 1, 1});
  const Model allreduce{"allreduce", test::allreduce(), here, 1, Version{3}},
      local{"local sgd", test::local_sgd(2), here, 1, Version{5}},
      finishes{"finishes", finishing(), here, 1, Version{3}},
      merge{"merge", test::wagma(3, Lateness::merges, {}, all_three), here, 1, Version{2}},
      skip{"skip", test::wagma(3, Lateness::skips, {}, all_three), here, 1, Version{2}},
      abandons{"abandons", test::nonblocking(), here, 1, Version{2}},
      solo{"solo", eager(Trigger::first_arrived, Lateness::accumulates), here, 1, Version{2}};
  std::vector<Model> all;
  for (const Model& model : {allreduce, local, finishes, merge, skip, abandons, solo})
    for (const auto& [where, nodes] : {std::pair{here, 1}, std::pair{two, 2}, std::pair{alone, 2}}) {
      if (where == two && model.answers.round(Version{0}).late != Lateness::waits) continue;  // As the next one.
      Model one = model;
      one.name = "back " + model.name + (nodes == 1 ? "" : where == two ? " of two agents" : " of two agents, alone");
      one.node_of = where;
      one.nodes = nodes;
      one.at_once = AtOnce::everything;
      one.pause = false;
      one.crash = one.returns = true;
      if (nodes == 2 && model.last == Version{5}) one.last = Version{3};
      if (model.name == "abandons") one.last = Version{1};  // Else 43 million states, three minutes.
      all.push_back(one);
    }
  return all;
}
/// The same, and the other agent is lost.
std::vector<Model> returning_where_an_agent_is_lost() {
  const Model allreduce{"allreduce", test::allreduce(), on({0, 0, 1}), 2, Version{2}},
      local{"local sgd", test::local_sgd(2), on({0, 0, 1}), 2, Version{3}},
      skip{"skip", test::wagma(2, Lateness::skips, {}, all_three), on({0, 0, 1}), 2, Version{1}},
      merge{"merge", test::wagma(2, Lateness::merges, {}, all_three), on({0, 0, 1}), 2, Version{1}};
  const Model solo{"solo", eager(Trigger::first_arrived, Lateness::accumulates, 0, 2), on({0, 0, 1}), 2, Version{1}},
      abandons{"abandons", test::nonblocking(), on({0, 0, 1}), 2, Version{0}};
  std::vector<Model> all;
  for (Model model : {allreduce, local, skip, merge, solo, abandons}) {
    model.name = "back and lost " + model.name;
    model.at_once = AtOnce::everything;
    model.pause = false;
    model.crash = model.returns = model.loss = true;
    all.push_back(model);
    if (model.answers.round(Version{0}).late != Lateness::waits) continue;  // skip: 24 million states, four minutes.
    model.name += " of three";
    model.node_of = on({0, 1, 2});
    model.nodes = 3;
    model.last = Version{1};
    all.push_back(model);
  }
  return all;
}
INSTANTIATE_TEST_SUITE_P(WhereAWorkerComesBackAndAnAgentIsLost, Explorer,
                         testing::ValuesIn(returning_where_an_agent_is_lost()), name_of);

INSTANTIATE_TEST_SUITE_P(WhereAWorkerComesBack, Explorer, testing::ValuesIn(returning()), name_of);

}  // namespace

void PrintTo(const Model& model, std::ostream* out) { *out << model.name; }

}  // namespace paceline::explorer
