#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "algorithms/plan.h"
#include "algorithms/simulate/simulation.h"
#include "tests/sim/checkers/checkers.h"

// Strategies on 64 workers under random delays, orders, duplicates and faults, judged by checkers that see the log
// only. PACELINE_SIM_SEEDS: how many seeds a case; PACELINE_SIM_FIRST: the first one (to replay).

namespace paceline {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr std::int32_t kWorkers = 64;

unsigned number(const char* name, unsigned otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : static_cast<unsigned>(std::strtoul(text, nullptr, 10));
}

#ifdef NDEBUG
constexpr unsigned kSeeds = 125;  // Times 8 cases: 1,000.
#else
constexpr unsigned kSeeds = 4;
#endif

struct Case {
  const char* name;
  const char* strategy;
  std::int32_t nodes;
  bool faults;
};

class WaitAvoiding : public testing::TestWithParam<Case> {};

simulate::World random_world(const Case& c, std::int64_t steps, std::mt19937_64& dice) {
  simulate::World world;
  world.nodes = c.nodes;
  for (std::int32_t i = 0; i < kWorkers; ++i) {
    world.node_of.push_back(
        NodeId{i < c.nodes ? i : static_cast<std::int32_t>(dice() % static_cast<unsigned>(c.nodes))});
  }
  // Times are a function of worker and iteration, whatever the order in which they are asked for.
  const auto salt = dice();
  world.compute = [salt](Rank rank, Version t) -> Duration {
    std::mt19937_64 own(salt ^ (static_cast<std::uint64_t>(rank.value) << 32) ^ static_cast<std::uint64_t>(t.value));
    own.discard(3);
    const auto late = own() % 16 == 0 ? 5000 : 0;
    return microseconds(900 + static_cast<long>(own() % 200) + late);
  };
  world.latency = [&dice](NodeId, NodeId) -> Duration { return microseconds(static_cast<long>(dice() % 400)); };
  world.copies = [&dice] { return dice() % 8 == 0 ? 2 : 1; };
  world.last = Version{steps - 1};
  world.patience_min = milliseconds(30);
  if (c.faults) {
    std::vector<std::int32_t> victims(kWorkers);
    for (std::int32_t i = 0; i < kWorkers; ++i) victims[static_cast<std::size_t>(i)] = i;
    std::shuffle(victims.begin(), victims.end(), dice);
    for (std::size_t i = 0; i < 6; ++i) {
      const Instant at{microseconds(static_cast<long>(dice() % 12000))};
      std::optional<Instant> until;
      if (i >= 3) until = at + milliseconds(static_cast<long>(i == 3 ? 500 : 5 + dice() % 10));
      world.faults.push_back({Rank{victims[i]}, at, until});
    }
  }
  return world;
}

TEST_P(WaitAvoiding, HoldsItsPromisesForAnyOrderOfEvents) {
  const Case& c = GetParam();
  constexpr std::int64_t kSteps = 12;
  const auto strategy = algorithms::parse_strategy(c.strategy, kWorkers);
  ASSERT_TRUE(strategy) << strategy.error().text;
  const unsigned first = number("PACELINE_SIM_FIRST", 0), seeds = number("PACELINE_SIM_SEEDS", kSeeds);
  for (unsigned seed = first; seed < first + seeds; ++seed) {
    std::mt19937_64 dice(seed);
    simulate::Learner learner;
    learner.start = [](Rank rank) { return simulate::Vector{static_cast<double>(rank.value)}; };
    learner.gradient = [](Rank rank, Version, const simulate::Vector& x) {
      const double d = x[0] - static_cast<double>(rank.value % 7);
      return std::pair(simulate::Vector{d}, d * d / 2);
    };
    simulate::Rules rules;
    rules.plan = [&] { return algorithms::make_plan(*strategy, kWorkers, kSteps); };
    rules.strategy = *strategy;
    const simulate::World world = random_world(c, kSteps, dice);
    sim::Expected expected{
        .node_of = world.node_of, .groups = {}, .sync = {}, .delay_max = milliseconds(6), .faults = c.faults};
    const auto plan = rules.plan();
    std::vector<Rank> everybody;
    for (std::int32_t i = 0; i < kWorkers; ++i) everybody.push_back(Rank{i});
    expected.tau = plan->period();
    for (Version v{0}; v.value < kSteps; v = v.next()) {
      const scheduler::Round round = plan->round(v);
      const bool waits = round.trigger == scheduler::Trigger::all_arrived;
      expected.sync.push_back(round.kind == scheduler::Round::Kind::sync && waits);
      expected.groups.emplace_back();
      if (round.kind == scheduler::Round::Kind::group) expected.groups.back() = plan->groups(v);
      if (round.kind == scheduler::Round::Kind::sync) expected.groups.back() = {everybody};
    }
    expected.merges = std::string_view(c.strategy).find("skip") == std::string_view::npos &&
                      strategy->tiers[0].late != scheduler::Lateness::abandons;
    expected.everybody_contributes = strategy->tiers[0].late != scheduler::Lateness::abandons;
    simulate::Simulation sut(world, learner, rules);
    ASSERT_TRUE(sut.run());
    const auto wrong = sim::check_all(sut.events(), expected);
    ASSERT_TRUE(wrong.empty()) << wrong[0] << "\nreplay with PACELINE_SIM_FIRST=" << seed << " PACELINE_SIM_SEEDS=1";
  }
}

INSTANTIATE_TEST_SUITE_P(SixtyFourWorkers, WaitAvoiding,
                         testing::Values(Case{"MergeOnOneAgent", "wagma(group=8,sync=5)", 1, false},
                                         Case{"MergeOnEightAgents", "wagma(group=8,sync=5)", 8, false},
                                         Case{"MergeOnAnAgentEach", "wagma(group=8,sync=5)", 64, false},
                                         Case{"SkipOnEightAgents", "wagma(group=8,sync=5,late=skip)", 8, false},
                                         Case{"SkipAndGraceWithFaults", "wagma(group=8,sync=5,late=skip,grace=2ms)", 8,
                                              true},
                                         Case{"MergeWithFaults", "wagma(group=8,sync=5)", 8, true},
                                         Case{"AllreduceWithFaults", "allreduce", 8, true},
                                         Case{"Nonblocking", "nonblocking(allreduce,batches=4)", 8, false}),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace paceline
