#include "algorithms/cluster/training/worker_share.h"

#include <gtest/gtest.h>

#include "algorithms/session/job_terms.h"

namespace paceline::cluster {
namespace {

JobSettings settings(const std::string& strategy, job::Options options = {}) {
  JobSettings settings{JobId{3}, NodeId{1}, {}, {}};
  options.strategy = strategy;
  settings.strategy = job_strategy(options, 4).value();
  settings.entry.options = std::move(options);
  settings.entry.node_of = {NodeId{0}, NodeId{0}, NodeId{1}, NodeId{1}};
  return settings;
}

session::JobTerms terms(const std::string& strategy) {
  return share_of(settings(strategy), Rank{2}, {100, 100, 0}).terms;
}

TEST(WorkerShareTest, AModelThatTheStrategyCannotTrainIsRefused) {
  const auto refused = [](const algorithms::Strategy& strategy, const SharedModel& model) {
    const auto fits = check_model(strategy, model);
    return fits ? "" : fits.error().text;
  };
  const auto plain = settings("allreduce").strategy;
  EXPECT_EQ(refused(plain, {100, 90, 0}), "");
  EXPECT_EQ(refused(plain, {0, 0, 0}), "the model has no trainable parameters");
  EXPECT_EQ(refused(plain, {100, 101, 0}), "its model has more parameters than elements");
  EXPECT_EQ(refused(plain, {100, 100, 200}), "unknown type of parameters");
  const auto half = static_cast<std::uint8_t>(memory::Dtype::f16);
  EXPECT_EQ(refused(plain, {100, 100, half}), "");
  EXPECT_NE(refused(settings("adacomm(block_momentum=0.5)").strategy, {100, 100, half}), "");
}

TEST(WorkerShareTest, ItsWindowHasAsManyBuffersAsTheStrategyNeeds) {
  const auto buffers = [](const std::string& strategy) {
    const auto share = share_of(settings(strategy), Rank{2}, {100, 100, 0});
    EXPECT_EQ(share.layout.buffers, share.terms.buffers) << "the worker maps the same";
    EXPECT_EQ(share.layout.elements, 100U);
    return share.layout.buffers;
  };
  EXPECT_EQ(buffers("d-psgd"), 4);
  EXPECT_EQ(buffers("streaming-diloco"), 3);
  EXPECT_LT(buffers("allreduce"), buffers("wagma(group=2)"));
}

TEST(WorkerShareTest, TheWorkerIsToldWhatTheStrategyAsks) {
  EXPECT_TRUE(terms("nonblocking").abandons);
  EXPECT_FALSE(terms("allreduce").abandons);
  EXPECT_TRUE(terms("d-psgd").own_pace);
  EXPECT_EQ(terms("local-sgd(period=5)").next_round, 4);
  EXPECT_EQ(terms("d-psgd").next_round, 0);
  EXPECT_TRUE(terms("decoupled-diloco").weighs_by_samples);
  EXPECT_FALSE(terms("decoupled-diloco").has_outer_step()) << "the agents make it";
  EXPECT_TRUE(terms("diloco").has_outer_step());
}

TEST(WorkerShareTest, AReplayWaitsForItsTurnAndARunDirectoryHasATrace) {
  job::Options options;
  options.run_directory = "/runs/1";
  options.replay = "/runs/0";
  auto share = share_of(settings("allreduce", options), Rank{2}, {100, 100, 0});
  EXPECT_EQ(share.terms.trace, "/runs/1/worker-2.trace");
  ASSERT_TRUE(share.make());
  EXPECT_EQ(share.control->words().may_publish.load(), INT64_MIN);
  EXPECT_GE(share.read_only.get(), 0);
  auto own = share_of(settings("allreduce"), Rank{2}, {100, 100, 0});
  EXPECT_EQ(own.terms.trace, "");
  ASSERT_TRUE(own.make());
  EXPECT_NE(own.control->words().may_publish.load(), INT64_MIN);
}

}  // namespace
}  // namespace paceline::cluster
