#include <gtest/gtest.h>

#include "tests/support/reference/testing.h"

namespace paceline::reference {
namespace {

using Server = Strategy::Server;
using Scale = Strategy::Scale;

Strategy server(Server mode, Scale scale = Scale::one, int bound = 0) {
  return {.kind = Kind::server, .bound = bound, .server = mode, .scale = scale};
}

Doubles after_each_push(const Strategy& strategy) {
  Doubles models;
  for (const Row& row : run(t4(strategy, 1))) models.push_back(row.model[0]);
  return models;
}

TEST(ReferenceTest, AnAsynchronousServerReproducesTheGoldenModels) {
  EXPECT_EQ(after_each_push(server(Server::async)), (Doubles{0, 2, 4, 10}));
  EXPECT_EQ(after_each_push(server(Server::async, Scale::p)), (Doubles{0, 0.5, 1, 2.5}));
  // Staleness 0, 1, 2, 3.
  EXPECT_EQ(after_each_push(server(Server::async, Scale::staleness)), (Doubles{0, 2, 3, 5}));
}

TEST(ReferenceTest, APushIsFreshIfNobodyPushedSinceThePull) {
  auto job = t4(server(Server::async), 3);
  job.compute_s = {{1, 1.25, 1.5, 9}};
  const auto rows = run(job);
  EXPECT_TRUE(row_of(rows, 0, 0).fresh);
  EXPECT_FALSE(row_of(rows, 1, 0).fresh);
  EXPECT_FALSE(row_of(rows, 0, 1).fresh);
  EXPECT_FALSE(row_of(rows, 3, 0).fresh);
  EXPECT_TRUE(row_of(rows, 3, 1).fresh);  // Alone since 9 s.
  EXPECT_EQ(group_of(rows, 1, 1), (std::vector{1}));
}

TEST(ReferenceTest, MomentumLivesAtTheServer) {
  auto job = t4(server(Server::async), 1);
  job.momentum = 0.5;
  // Gradients 0, -8, -8, -24: buffers 0, -8, -12, -30.
  Doubles models;
  for (const Row& row : run(job)) models.push_back(row.model[0]);
  EXPECT_EQ(models, (Doubles{0, 2, 5, 12.5}));
}

TEST(ReferenceReductionTest, ASynchronousServerIsAllreduce) {
  for (unsigned seed = 0; seed < 10; ++seed) {
    auto job = random_job(seed, server(Server::sync), 20);
    auto base = random_job(seed, {.kind = Kind::allreduce}, 20);
    job.momentum = base.momentum = 0.5;
    expect_same(run(job), run(base));
  }
}

TEST(ReferenceReductionTest, ABoundOfZeroWithAPthOfTheRateIsSynchronous) {
  for (unsigned seed = 0; seed < 10; ++seed) {
    const auto job = random_job(seed, server(Server::bounded, Scale::p, 0), 20);
    const auto base = random_job(seed, {.kind = Kind::allreduce}, 20);
    const auto rows = run(job), expected = run(base);
    // The last push of every round leaves the model that allreduce has.
    std::map<int, Row> last;
    for (const Row& row : rows) last[row.step] = row;
    for (const auto& [step, row] : last) {
      EXPECT_EQ(row.time_s, row_of(expected, 0, step).time_s);
      EXPECT_NEAR(row.model[0], row_of(expected, 0, step).model[0], 1e-9);
    }
    EXPECT_NEAR(summarise(job).model[1], summarise(base).model[1], 1e-9);
  }
}

TEST(ReferenceReductionTest, ABoundThatNobodyReachesIsAsynchronous) {
  for (unsigned seed = 0; seed < 10; ++seed)
    expect_same(run(random_job(seed, server(Server::bounded, Scale::staleness, 1000), 20)),
                run(random_job(seed, server(Server::async, Scale::staleness), 20)));
}

TEST(ReferenceReductionTest, AServerOfOneIsSerial) {
  auto job = random_job(4, server(Server::async), 20);
  job.workers.resize(1);
  job.start.resize(1);
  auto serial = job;
  serial.strategy = {.kind = Kind::allreduce};
  expect_same(run(job), run(serial));
}

TEST(ReferenceTest, ABoundBlocksTheFastest) {
  auto job = t4(server(Server::bounded, Scale::one, 1), 6);
  job.compute_s = {{1, 1, 1, 4}};
  const auto rows = run(job);
  // After its second step worker 0 is two ahead of worker 3, until that one pushes at 4.
  EXPECT_EQ(row_of(rows, 0, 1).time_s, 2);
  EXPECT_EQ(row_of(rows, 0, 2).time_s, 5);
  EXPECT_EQ(row_of(rows, 0, 3).time_s, 9);
  EXPECT_NEAR(summarise(job).wait_s[0], row_of(rows, 0, 5).time_s - 6, 1e-9);
  for (const Row& row : rows) {
    int least = 6;
    std::map<int, int> done;
    for (int i = 0; i < 4; ++i) done[i] = 0;
    for (const Row& other : rows)
      if (other.time_s <= row.time_s - 1) ++done[other.worker];
    for (const auto& [worker, steps] : done) least = std::min(least, steps);
    EXPECT_LE(row.step - least, row.worker == 3 ? 0 : 1);
  }
}

TEST(ReferenceTest, InASteadyRoundTheOthersPushInBetween) {
  // Staleness P - 1 = 3: each step divides by 3, but for the first round.
  auto job = t4(server(Server::async, Scale::staleness), 2);
  job.compute_s = {{1, 1.25, 1.5, 1.75}, {1, 1, 1, 1}};
  const auto rows = run(job);
  const double pulled = row_of(rows, 0, 0).model[0], before = row_of(rows, 3, 0).model[0];
  EXPECT_NEAR(row_of(rows, 0, 1).model[0], before - 0.25 / 3 * (pulled - 0), 1e-12);
}

}  // namespace
}  // namespace paceline::reference
