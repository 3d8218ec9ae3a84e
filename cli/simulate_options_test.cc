#include "cli/simulate_options.h"

#include <gmock/gmock.h>

namespace paceline::cli {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

SimulateFlags flags_of(std::string strategy) {
  SimulateFlags flags;
  flags.strategy = std::move(strategy);
  return flags;
}

std::string error_of(const SimulateFlags& flags) {
  const auto plan = plan_simulation(flags);
  EXPECT_FALSE(plan);
  return plan ? "" : plan.error().text;
}

TEST(SimulateOptions, WithoutFlagsFourWorkersOfOneSecondAStep) {
  const auto plan = plan_simulation(flags_of("allreduce"));
  ASSERT_TRUE(plan) << plan.error().text;
  EXPECT_EQ(plan->scenario.workers, 4);
  EXPECT_EQ(std::get<simulate::Constant>(plan->scenario.compute).time_s, 1);
  ASSERT_EQ(plan->entries.size(), 1u);
  EXPECT_EQ(plan->entries[0].label, "allreduce");
}

TEST(SimulateOptions, EveryFlagIsTaken) {
  SimulateFlags flags = flags_of("allreduce");
  flags.workers = 8;
  flags.steps = 50;
  flags.lr = 0.05;
  flags.seed = 9;
  flags.compute = "uniform(1s,2s)";
  flags.straggle = "2:40ms";
  flags.slow = {"3:4x,5:1.5x", "0:2"};
  flags.network = "latency=1ms,bandwidth=8Gbit/s";
  flags.bytes = "100MB";
  flags.fail = {"2@30s", "4@10s+500ms"};
  const auto plan = plan_simulation(flags);
  ASSERT_TRUE(plan) << plan.error().text;
  const simulate::Scenario& scenario = plan->scenario;
  EXPECT_EQ(scenario.workers, 8);
  EXPECT_EQ(scenario.steps, 50);
  EXPECT_EQ(scenario.lr, 0.05);
  EXPECT_EQ(scenario.seed, 9u);
  EXPECT_EQ(std::get<simulate::Uniform>(scenario.compute).most_s, 2);
  EXPECT_EQ(scenario.straggle.count, 2);
  EXPECT_EQ(scenario.straggle.delay_s, 0.04);
  EXPECT_EQ(scenario.slow, (std::map<std::int32_t, double>{{0, 2}, {3, 4}, {5, 1.5}}));
  EXPECT_EQ(scenario.latency_s, 1e-3);
  EXPECT_EQ(scenario.bandwidth_Bps, 1e9);
  EXPECT_EQ(scenario.model_bytes, 1e8);
  ASSERT_EQ(scenario.failures.size(), 2u);
  EXPECT_EQ(scenario.failures[0].down_s, std::nullopt);
  EXPECT_EQ(scenario.failures[1].down_s, 0.5);
}

TEST(SimulateOptions, AStragglerCanBeNamed) {
  SimulateFlags flags = flags_of("allreduce");
  flags.straggle = "worker-3:2s";
  const auto plan = plan_simulation(flags);
  ASSERT_TRUE(plan) << plan.error().text;
  EXPECT_EQ(plan->scenario.straggle.worker, 3);
  flags.straggle = "worker-4:2s";
  EXPECT_THAT(error_of(flags), HasSubstr("0 to 3"));
}

TEST(SimulateOptions, ComparedStrategiesHaveAsManyMiniBatchesAStep) {
  SimulateFlags flags;
  flags.compare = "allreduce,nonblocking(batches=6),wagma";
  const auto plan = plan_simulation(flags);
  ASSERT_TRUE(plan) << plan.error().text;
  EXPECT_EQ(plan->scenario.batches, 6);
  std::vector<bool> brings;
  for (const auto& entry : plan->entries) brings.push_back(entry.brings_batches);
  EXPECT_THAT(brings, ElementsAre(false, true, false));
}

TEST(SimulateOptions, AnErrorNamesTheFlagAndWhatItTakes) {
  const auto with = [](auto set) {
    SimulateFlags flags = flags_of("allreduce");
    set(flags);
    return error_of(flags);
  };
  EXPECT_THAT(with([](auto& f) { f.workers = 0; }), StartsWith("--workers 0: "));
  EXPECT_THAT(with([](auto& f) { f.steps = 0; }), StartsWith("--steps 0: "));
  EXPECT_THAT(with([](auto& f) { f.lr = -1; }), StartsWith("--lr -1"));
  EXPECT_THAT(with([](auto& f) { f.compute = "normal(1s)"; }),
              AllOf(StartsWith("--compute normal(1s): "), HasSubstr("exponential(1s)")));
  EXPECT_THAT(with([](auto& f) { f.compute = "trace(/nowhere)"; }), HasSubstr("no such file"));
  EXPECT_THAT(with([](auto& f) { f.straggle = "1:x"; }), StartsWith("--straggle 1:x: "));
  EXPECT_THAT(with([](auto& f) { f.straggle = "worker-1"; }), HasSubstr("worker-3:40ms"));
  EXPECT_THAT(with([](auto& f) { f.straggle = "9:1s"; }), HasSubstr("only 4 workers"));
  EXPECT_THAT(with([](auto& f) { f.slow = {"4:2x"}; }), HasSubstr("0 to 3"));
  EXPECT_THAT(with([](auto& f) { f.network = "latency=fast"; }), StartsWith("--network latency=fast: "));
  EXPECT_THAT(with([](auto& f) { f.network = "bandwidth"; }), StartsWith("--network bandwidth: "));
  EXPECT_THAT(with([](auto& f) { f.bytes = "-1"; }), StartsWith("--bytes -1: "));
  EXPECT_THAT(with([](auto& f) { f.fail = {"2"}; }), StartsWith("--fail 2: "));
  EXPECT_THAT(with([](auto& f) { f.fail = {"4@1s"}; }), HasSubstr("0 to 3"));
  EXPECT_THAT(with([](auto& f) { f.fail = {"1@1s", "1@2s"}; }), HasSubstr("once only"));
  EXPECT_THAT(with([](auto& f) { f.fail = {"0@1s,1@1s,2@1s,3@1s"}; }), HasSubstr("no worker is left"));
  EXPECT_THAT(with([](auto& f) { f.strategy = "allredcue"; }), HasSubstr("allreduce"));
  EXPECT_THAT(with([](auto& f) { f.compare = "wagma"; }), HasSubstr("exclude each other"));
}

TEST(SimulateOptions, SizesHaveUnits) {
  EXPECT_EQ(parse_size("4096"), 4096);
  EXPECT_EQ(parse_size("100MB"), 1e8);
  EXPECT_EQ(parse_size("1.5GiB"), 1.5 * (1 << 30));
  EXPECT_EQ(parse_size("10Gbit"), 1.25e9);
  for (const char* text : {"", "MB", "0", "-1MB", "1XB", "1e30"}) EXPECT_EQ(parse_size(text), std::nullopt) << text;
}

TEST(SimulateOptions, FlagsOfScenariosAreRecognised) {
  SimulateFlags flags;
  EXPECT_EQ(flag_beside_job(flags), std::nullopt);
  flags.slow = {"1:2x"};
  EXPECT_EQ(flag_beside_job(flags), "--slow");
}

}  // namespace
}  // namespace paceline::cli
