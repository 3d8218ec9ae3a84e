#include "algorithms/simulate/job.h"

#include <gmock/gmock.h>

namespace paceline::simulate {
namespace {

using testing::HasSubstr;

/// The canonical problem: optimum of the mean at 6 2/3.
Job t4(std::string strategy, std::int64_t steps) {
  Job job;
  const double a[] = {1, 2, 1, 2}, c[] = {0, 4, 8, 12};
  for (int i = 0; i < 4; ++i) job.workers.push_back({{a[i]}, {c[i]}});
  job.start = {{0.0}};
  job.strategy = std::move(strategy);
  job.steps = steps;
  job.compute_s = {{1, 1, 1, 1}};
  return job;
}

std::vector<double> models(const Job& job, std::int64_t step) {
  const auto rows = simulate(job);
  EXPECT_TRUE(rows) << rows.error().text;
  std::vector<double> result(job.workers.size(), -1);
  for (const Row& row : rows->rows) {
    if (row.step.value == step) result[static_cast<std::size_t>(row.worker.value)] = row.model[0];
  }
  return result;
}

void expect_all(const std::vector<double>& values, double expected) {
  for (double v : values) EXPECT_NEAR(v, expected, 1e-12);
}

TEST(Simulate, AllreduceOnT4) {
  expect_all(models(t4("allreduce", 3), 0), 2.5);
  expect_all(models(t4("allreduce", 3), 1), 4.0625);
  expect_all(models(t4("allreduce", 3), 2), 5.0390625);
}

TEST(Simulate, LocalSgdOnT4) {
  EXPECT_EQ(models(t4("local-sgd(period=2)", 4), 0), (std::vector<double>{0, 2, 2, 6}));
  expect_all(models(t4("local-sgd(period=2)", 4), 1), 3.875);
  expect_all(models(t4("local-sgd(period=2)", 4), 3), 5.44921875);
}

TEST(Simulate, EagerSgdGoesOnWithoutAWorkerThatStartsRoundsOrMakesUpTheNumber) {
  for (const auto* strategy : {"eager-sgd(quorum=4)", "eager-sgd(majority)"}) {
    Job job = t4(strategy, 12);
    job.node_of = {0, 0, 1, 1};
    job.failures = {{.worker = Rank{3}, .at_s = 0.5, .down_s = {}}};
    // Of four gradients one is missing: (0 - 8 - 8) / 4, then (1 - 6 - 7) / 4.
    EXPECT_EQ(models(job, 0), (std::vector<double>{1, 1, 1, -1})) << strategy;
    EXPECT_EQ(models(job, 1), (std::vector<double>{1.75, 1.75, 1.75, -1})) << strategy;
    EXPECT_NE(models(job, 11)[0], -1) << strategy;
  }
}

TEST(Simulate, WagmaOnT4WithEverybodyInTime) {
  const Job job = t4("wagma(group=2,sync=4)", 4);
  EXPECT_EQ(models(job, 0), (std::vector<double>{1, 1, 4, 4}));
  EXPECT_EQ(models(job, 1), (std::vector<double>{2.875, 5.25, 2.875, 5.25}));
  expect_all(models(job, 3), 5.556640625);
}

TEST(Simulate, WagmaOnT4WithOneWorkerLateMergesItWithADivisorOfOneMore) {
  Job job = t4("wagma(group=2,sync=9)", 3);
  job.compute_s = {{1, 2, 1, 1}};
  const auto rows = simulate(job);
  ASSERT_TRUE(rows);
  std::vector<double> worker1;
  for (const Row& row : rows->rows) {
    if (row.worker == Rank{1} && row.step.value < 3) worker1.push_back(row.model[0]);
  }
  ASSERT_EQ(worker1.size(), 3u);
  EXPECT_NEAR(worker1[0], 4, 1e-12);
  EXPECT_NEAR(worker1[1], 2.625, 1e-12);
  EXPECT_NEAR(worker1[2], 115.0 / 48, 1e-12);
}

TEST(Simulate, NonblockingOnT4CountsWhatIsFinished) {
  Job job = t4("nonblocking(allreduce,batches=4)", 2);
  job.compute_s = {{1, 2.1, 1.5, 6.2}};
  expect_all(models(job, 0), 0.375);
  expect_all(models(job, 1), 0.703125);
  const auto rows = simulate(job);
  ASSERT_EQ(rows->rows.size(), 8u);
  const std::int64_t batches[] = {4, 1, 2, 0};
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(rows->rows[i].batches_done, batches[i % 4]);
    EXPECT_EQ(rows->rows[i].fresh, i % 4 != 3);
    EXPECT_EQ(rows->rows[i].time, from_seconds(i < 4 ? 4 : 8));
  }
}

/// When the last worker has done each step, with messages that take half a second.
std::vector<double> ends(const std::string& strategy, std::int64_t steps = 2, std::size_t workers = 4) {
  Job job = t4(strategy, steps);
  job.workers.resize(workers);
  job.compute_s = {std::vector<double>(workers, 1.0)};
  job.latency_s = 0.5;
  const auto outcome = simulate(job);
  EXPECT_TRUE(outcome) << (outcome ? "" : outcome.error().text);
  std::vector<double> last(static_cast<std::size_t>(steps), 0);
  for (const Row& row : outcome->rows) {
    double& end = last[static_cast<std::size_t>(row.step.value)];
    end = std::max(end, seconds(row.time));
  }
  return last;
}

TEST(SimulateANetwork, AveragesTakeTheFasterOfRingAndRecursiveDoubling) {
  EXPECT_EQ(ends("allreduce"), (std::vector<double>{2, 4}));  // Two rounds of doubling; a ring takes six messages.
  EXPECT_EQ(ends("local-sgd(period=2)"), (std::vector<double>{1, 3}));
  EXPECT_EQ(ends("wagma(group=2,sync=2)"), (std::vector<double>{1.5, 3.5}));
  EXPECT_EQ(ends("hier-avg(k1=1,k2=2,group=2)"), (std::vector<double>{1.5, 3.5}));
  EXPECT_EQ(ends("server(sync)"), (std::vector<double>{5, 10}));  // Eight messages through one link.
}

TEST(SimulateANetwork, NeighboursWaitForWhatTheyAreSentUnlessItTravelsWhileTheyCompute) {
  EXPECT_EQ(ends("d-psgd(ring,order=atc)"), (std::vector<double>{2, 4})) << "the second of two messages";
  EXPECT_EQ(ends("d-psgd(ring,order=cta)"), (std::vector<double>{1, 2}));
  EXPECT_EQ(ends("sgp"), (std::vector<double>{1.5, 3}));
  EXPECT_EQ(ends("osgp"), (std::vector<double>{1, 2}));
}

TEST(SimulateANetwork, PushesAndPullsQueueAtTheServer) {
  EXPECT_EQ(ends("server(async)", 2, 1), (std::vector<double>{1.5, 3.5}));
  EXPECT_EQ(ends("server(async)", 1, 2), (std::vector<double>{2.0})) << "the second push waits for the first";
  EXPECT_EQ(ends("ad-psgd(bipartite)", 2, 2), (std::vector<double>{1.5, 3}));
}

TEST(SimulateANetwork, BytesTakeTime) {
  Job job = t4("sgp", 1);
  job.bandwidth_Bps = 16;  // A number and a weight.
  const auto outcome = simulate(job);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->summary.time, from_seconds(2));
  EXPECT_EQ(outcome->summary.bytes, 4 * 16);
}

TEST(Simulate, RefusesToHaveWorkersLeaveAndJoinWhereTheyCannot) {
  const auto error_of = [](const std::string& strategy, std::vector<World::View> views, std::int64_t steps = 9) {
    Job job = t4(strategy, steps);
    job.views = std::move(views);
    const auto outcome = simulate(job);
    return outcome ? std::string("none") : outcome.error().text;
  };
  const std::vector<Rank> one{Rank{1}}, all{Rank{0}, Rank{1}, Rank{2}, Rank{3}};
  EXPECT_EQ(error_of("allreduce", {{Version{2}, one}, {Version{4}, {}, one}}), "none");
  EXPECT_EQ(error_of("allreduce", {{Version{2}, one}, {Version{3}, one}}), "views[1].leave: worker 1 is not there");
  EXPECT_EQ(error_of("allreduce", {{Version{2}, all}}), "views[0].leave: somebody has to stay");
  EXPECT_EQ(error_of("allreduce", {{Version{2}, {}, one}}), "views[0].join: worker 1 is there, or leaves");
  EXPECT_EQ(error_of("allreduce", {{Version{2}, one, one}}), "views[0].join: worker 1 is there, or leaves");
  EXPECT_EQ(error_of("allreduce", {{Version{2}, {}, {Rank{7}}}}), "views[0].join: worker 7 is none of the job");
  EXPECT_EQ(error_of("allreduce", {{Version{8}, one}}),
            "views[0].after: 8; must be larger than that before it, and below 8, the last step");
  EXPECT_EQ(error_of("allreduce", {{Version{2}, one}, {Version{2}, {}, one}}).substr(0, 17), "views[1].after: 2");
  EXPECT_EQ(error_of("local-sgd(period=3)", {{Version{3}, one}}),
            "views[0].after: there is no average of all after step 3");
  EXPECT_EQ(error_of("local-sgd(period=3)", {{Version{2}, one}, {Version{4}, {}, one}}),
            "views[1].after: there is no average of all after step 4");
  for (const char* const strategy : {"sgp", "wagma", "local-sgd(period=3,late=skip)", "server(async)", "hier-avg"})
    EXPECT_NE(error_of(strategy, {{Version{2}, one}}).find("they are not simulated"), std::string::npos) << strategy;
}

TEST(Simulate, RefusesWhatMakesNoSense) {
  const auto error = [](auto&& spoil) {
    Job job = t4("allreduce", 3);
    spoil(job);
    const auto rows = simulate(job);
    return rows ? std::string() : rows.error().text;
  };
  EXPECT_THAT(error([](Job& j) { j.compute_s = {{1, 1, 0, 1}}; }), HasSubstr("compute_s"));
  EXPECT_THAT(error([](Job& j) { j.compute_s = {{1, 1, 1}}; }), HasSubstr("compute_s"));
  EXPECT_THAT(error([](Job& j) { j.workers[2].c = {1, 2}; }), HasSubstr("problem.workers[2]"));
  EXPECT_THAT(error([](Job& j) { j.steps = 0; }), HasSubstr("steps"));
  EXPECT_THAT(error([](Job& j) { j.start = {{0.0}, {1.0}}; }), HasSubstr("start"));
  EXPECT_THAT(error([](Job& j) { j.start = {{0.0}, {1.0}, {2.0}, {3.0}}; }), HasSubstr("one model"));
  EXPECT_THAT(error([](Job& j) { j.strategy = "alreduce"; }), HasSubstr("alreduce"));
  const auto one_dies = [&](const char* strategy) {
    return error([&](Job& j) {
      j.strategy = strategy;
      j.failures = {{.worker = Rank{1}, .at_s = 1.5, .down_s = {}}};
    });
  };
  EXPECT_THAT(one_dies("d-psgd"), HasSubstr("d-psgd"));
  for (const auto* strategy : {"eager-sgd(majority)", "eager-sgd(quorum=4)", "eager-sgd(quorum=3)", "eager-sgd(solo)"})
    EXPECT_EQ(one_dies(strategy), "") << strategy;
}

}  // namespace
}  // namespace paceline::simulate
