#include <gtest/gtest.h>

#include "tests/support/reference/testing.h"

namespace paceline::reference {
namespace {

// Messages and bytes of T4 (B = 8).

void expect_books(const Strategy& strategy, int steps, std::int64_t messages, std::int64_t bytes) {
  const auto summary = summarise(t4(strategy, steps));
  EXPECT_EQ(summary.messages, messages);
  EXPECT_EQ(summary.bytes, bytes);
}

TEST(ReferenceBooksTest, AveragesOfAllAreRings) {
  expect_books({.kind = Kind::allreduce}, 3, 3 * 24, 3 * 48);
  expect_books({.kind = Kind::local_sgd, .period = 2}, 5, 2 * 24, 2 * 48);
  expect_books({.kind = Kind::post_local, .period = 2, .warmup = 1}, 5, 3 * 24, 3 * 48);
  expect_books({.kind = Kind::adacomm, .period = 2}, 5, 2 * 24, 2 * 48);
  expect_books({.kind = Kind::bmuf, .period = 2}, 5, 2 * 24, 2 * 48);
  expect_books({.kind = Kind::slowmo, .period = 2}, 5, 2 * 24, 2 * 48);
  expect_books({.kind = Kind::diloco, .period = 2}, 5, 2 * 24, 2 * 48);
  expect_books({.kind = Kind::nonblocking}, 5, 5 * 24, 5 * 48);
}

TEST(ReferenceBooksTest, ClustersAreSmallRings) {
  // Two clusters of two: 2 x 4 messages of 4 bytes.
  expect_books({.kind = Kind::hier_avg, .group = 2, .k1 = 1, .k2 = 2}, 4, 2 * 8 + 2 * 24, 2 * 32 + 2 * 48);
}

TEST(ReferenceBooksTest, ButterflyGroupsExchangeWholeModels) {
  Strategy wagma_of_two = wagma(2, 4);
  expect_books(wagma_of_two, 4, 3 * 4 + 24, 3 * 32 + 48);
  expect_books(wagma(4, 4), 4, 3 * 8 + 24, 3 * 64 + 48);
  wagma_of_two.strided = true;
  expect_books(wagma_of_two, 4, 3 * 8 + 24, 3 * 32 + 48);
}

TEST(ReferenceBooksTest, AbsentWorkersCountAsPresent) {
  auto job = t4(wagma(2, 4, true, 1), 8);
  job.compute_s = {{1, 1, 1, 100}};
  EXPECT_EQ(summarise(job).messages, 6 * 4 + 2 * 24);
}

TEST(ReferenceBooksTest, GossipSendsAlongEveryEdge) {
  expect_books({.kind = Kind::d_psgd}, 3, 3 * 8, 3 * 64);
  expect_books({.kind = Kind::d_psgd, .graph = Strategy::Graph::complete}, 3, 3 * 12, 3 * 96);
  expect_books({.kind = Kind::d_psgd, .graph = Strategy::Graph::bipartite}, 3, 3 * 4, 3 * 32);
  expect_books({.kind = Kind::sgp}, 3, 3 * 4, 3 * 64);
  expect_books({.kind = Kind::sgp, .peers = 2}, 3, 3 * 8, 3 * 128);
  expect_books({.kind = Kind::osgp}, 3, 3 * 4, 3 * 64);
  expect_books({.kind = Kind::ad_psgd, .partners = {{1, 0, 3, 2}}}, 3, 3 * 8, 3 * 64);
  expect_books({.kind = Kind::nonblocking, .base = Kind::d_psgd}, 3, 3 * 8, 3 * 64);
  expect_books({.kind = Kind::nonblocking, .group = 2, .base = Kind::hier_avg, .k1 = 1, .k2 = 2}, 4, 2 * 8 + 2 * 24,
               2 * 32 + 2 * 48);
}

TEST(ReferenceBooksTest, AServerIsPushedAndPulledByEverybody) {
  for (const auto mode : {Strategy::Server::sync, Strategy::Server::async, Strategy::Server::bounded})
    expect_books({.kind = Kind::server, .server = mode}, 3, 3 * 8, 3 * 64);
  expect_books({.kind = Kind::nonblocking, .base = Kind::server}, 3, 3 * 8, 3 * 64);
}

TEST(ReferenceBooksTest, EagerSgdSumsGradientsOrAveragesModels) {
  expect_books({.kind = Kind::eager_sgd, .sync = 2}, 4, 4 * 24, 4 * 48);
}

}  // namespace
}  // namespace paceline::reference
