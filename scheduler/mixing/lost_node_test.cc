// What an agent tells the others, and keeps for later, when a third one is lost or a graph is agreed on.

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/test_directory.h"
#include "scheduler/mixing/batch_coordinator.h"
#include "scheduler/mixing/exchange_coordinator.h"
#include "scheduler/mixing/mix_coordinator.h"
#include "scheduler/shell/averaging_service_test_support.h"

namespace paceline::scheduler {
namespace {

/// Each takes so much of worker 2's, and the rest of its own.
class TakesFromTwo : public MixPlan {
 public:
  explicit TakesFromTwo(double share) : share_(share) {}
  std::vector<Share> row(Rank to, Version) const override {
    if (to == Rank{2} || share_ == 0) return {{to, 1}};
    return {{to, 1 - share_}, {Rank{2}, share_}};
  }
  std::vector<Rank> receivers(Rank from, Version) const override {
    if (from != Rank{2} || share_ == 0) return {};
    return {Rank{0}, Rank{1}};
  }

 private:
  double share_;
};

class GivesToAll final : public MixPlan {
 public:
  std::vector<Share> row(Rank to, Version) const override { return {{to, 1}}; }
  std::vector<Rank> receivers(Rank from, Version) const override {
    std::vector<Rank> others{Rank{0}, Rank{1}, Rank{2}};
    std::erase(others, from);
    return others;
  }
};

/// The service of node 1, of three with a worker each.
class LostNodeTest : public ServiceTest {
 protected:
  static JobOptions job() {
    auto job = two_workers();
    job.node_of = {NodeId{0}, NodeId{1}, NodeId{2}};
    job.self = NodeId{1};
    job.evaluates = false;
    return job;
  }
  SendToNode send() {
    return [this](NodeId to, wire::Message& message, const auto&) {
      const auto envelope = message.root().asReader();
      std::string text = "to " + to_string(to) + ": ";
      if (envelope.isShare())
        text += "share of " + std::to_string(envelope.getShare().getRank()) + " at " +
                std::to_string(envelope.getShare().getVersion());
      else if (envelope.isBatch() && envelope.getBatch().getBodies() >= 0)
        text += "node " + std::to_string(envelope.getBatch().getOf()) + " did " +
                std::to_string(envelope.getBatch().getBodies()) + " of " +
                std::to_string(envelope.getBatch().getVersion());
      else if (envelope.isFlushed())
        text += "flushed";
      else if (envelope.isEnding())
        text += words_of(envelope.getEnding());
      else if (envelope.isPartial() && envelope.getPartial().getWeight() > 0)
        text += "part of " + std::to_string(static_cast<int>(envelope.getPartial().getWeight())) +
                " in the mean after " + std::to_string(envelope.getPartial().getVersion());
      else if (envelope.isGone() && envelope.getGone().getContributed() >= 0)
        text += std::to_string(envelope.getGone().getRank()) + " gone after " +
                std::to_string(envelope.getGone().getContributed());
      else
        return;
      sent_.push_back(std::move(text));
    };
  }
  static std::string words_of(const wire::Ending::Reader& ending) {
    switch (ending.getPhase()) {
      case wire::Ending::Phase::WISH: return "wish";
      case wire::Ending::Phase::ASK: return "ask";
      case wire::Ending::Phase::ANSWER: return "begun " + std::to_string(ending.getVersion()) + joiners_of(ending);
      case wire::Ending::Phase::DECIDE: return "decided " + std::to_string(ending.getVersion()) + joiners_of(ending);
    }
    return "?";
  }
  static std::string joiners_of(const wire::Ending::Reader& ending) {
    std::string text;
    const bool is_answer = ending.getPhase() == wire::Ending::Phase::ANSWER;
    for (const auto each : ending.getBegun())
      if (is_answer || each.getVersion() == ending.getVersion()) text += " with " + std::to_string(each.getRank());
    return text;
  }
  /// Node 0 is lost, and node 2 has passed on what it held.
  void first_is_lost() {
    service_->on_node_gone(NodeId{0}, now);
    wire::Message message;
    message.root().initFlushed().initLost(1).set(0, 0);
    service_->on_message(NodeId{2}, message.root().asReader(), {}, now);
  }
  template <class T, class... More>
  void begin_as(const typename T::Options& options, const More&... more) {
    service_ = service<T>(job(), send(), options, more...);
    join(1);
    sent_.clear();
  }
  void on_share(Rank of, Version v, double model) {
    wire::Message message;
    auto body = message.root().initShare();
    body.setRank(of.value);
    body.setVersion(v.value);
    body.setWeight(1);
    std::vector<double> numbers(kElements, model);
    const auto bytes = std::as_bytes(std::span(numbers));
    service_->on_message(NodeId{of.value}, message.root().asReader(), {bytes.begin(), bytes.end()}, now);
    end_averagings();
  }
  void on_ending(wire::Ending::Phase phase, Version v, const std::vector<std::int32_t>& members = {}, int number = 1) {
    wire::Message message;
    auto body = message.root().initEnding();
    body.setPhase(phase);
    body.setVersion(v.value);
    body.setGraph(true);
    body.setNumber(phase == wire::Ending::Phase::DECIDE ? number : 0);
    auto list = body.initBegun(static_cast<unsigned>(members.size()));
    for (unsigned i = 0; i < list.size(); ++i) {
      list[i].setRank(members[i]);
      list[i].setVersion(joins_ == members[i] ? v.value : -1);  // It was in the one before.
    }
    service_->on_message(NodeId{0}, message.root().asReader(), {}, now);
  }
  static MixCoordinator::Options push_sum() {
    MixCoordinator::Options options;
    options.push_sum = true;
    options.plan = std::make_shared<TakesFromTwo>(0);
    options.plan_of = [](const std::vector<Rank>&) { return std::make_shared<TakesFromTwo>(0.5); };
    return options;
  }

  std::vector<std::string> sent_;
  std::optional<std::int32_t> joins_;  ///< Who of a decision's members.
};

using Said = std::vector<std::string>;

TEST_F(LostNodeTest, SharesThatAllMustHaveArePassedOnBeforeTheFlush) {
  ExchangeCoordinator::Options options;
  options.parts = 1;
  options.plan = std::make_shared<TakesFromTwo>(0.5);
  begin_as<ExchangeCoordinator>(options);
  on_share(Rank{2}, Version{0}, 3);
  service_->on_node_gone(NodeId{2}, now);
  EXPECT_EQ(sent_, (Said{"to 0: share of 2 at 0", "to 0: flushed"}));
}

TEST_F(LostNodeTest, WhereEachMixesWhatReachesItNothingIsPassedOn) {
  MixCoordinator::Options options;
  options.plan = std::make_shared<TakesFromTwo>(0.5);
  begin_as<MixCoordinator>(options);
  on_share(Rank{2}, Version{0}, 3);
  service_->on_node_gone(NodeId{2}, now);
  EXPECT_EQ(sent_, Said{"to 0: flushed"});
}

TEST_F(LostNodeTest, HowManyMiniBatchesItDidIsPassedOn) {
  MixCoordinator::Options options;
  options.plan = std::make_shared<TakesFromTwo>(0.5);
  options.stands_in = true;
  begin_as<BatchCoordinator>(
      options, BatchEngine::Options{
                   .self = NodeId{1}, .node_of = job().node_of, .batches = 4, .weight = BatchEngine::Weight::of_all});
  wire::Message message;
  message.root().initBatch().setBodies(3);
  service_->on_message(NodeId{2}, message.root().asReader(), {}, now);
  service_->on_node_gone(NodeId{2}, now);
  EXPECT_EQ(sent_, (Said{"to 0: node 2 did 3 of 0", "to 0: flushed"}));
}

// Worker 2 knows the decision, and gives to what comes after it, before this agent does: the graph before would have
// no use for it.
TEST_F(LostNodeTest, WhatIsGivenToAGraphThatIsBeingAgreedOnWaitsForIt) {
  begin_as<MixCoordinator>(push_sum());
  on_ending(wire::Ending::Phase::ASK, {});
  EXPECT_EQ(sent_, Said{"to 0: begun 0"});
  on_share(Rank{2}, Version{1}, 10);
  on_ending(wire::Ending::Phase::DECIDE, Version{0}, {1, 2});
  publish(1, 0, 2);
  end_averagings();
  EXPECT_EQ(numbers(1, *window(1).writing())[0], 2) << "alone";
  publish(1, 1, 4);
  end_averagings();
  ASSERT_TRUE(window(1).writing());
  EXPECT_EQ(numbers(1, *window(1).writing())[0], 0.5 * 4 + 0.5 * 10);
}

// Whoever has it knows no more of this node than its record, which is what there is of it when it is lost.
TEST_F(LostNodeTest, WhatLeavesTheNodeFollowsFromWhatIsInItsRecord) {
  const test::TestDirectory directory;
  auto job = LostNodeTest::job();
  job.record_path = directory.path / "record";
  std::vector<bool> has_arrived;
  const auto send = [&](NodeId, wire::Message& message, const auto&) {
    if (!message.root().asReader().isShare()) return;
    const auto record = read_record_of_killed(job.record_path);
    ASSERT_TRUE(record);
    const Decision arrived{.kind = Decision::Kind::arrived, .rank = Rank{1}, .version = Version{0}};
    has_arrived.push_back(std::any_of(record->decisions.begin(), record->decisions.end(),
                                      [&](const Decision& told) { return told.is_same_event(arrived); }));
  };
  MixCoordinator::Options options;
  options.plan = std::make_shared<GivesToAll>();
  service_ = service<MixCoordinator>(job, send, options);
  join(1);
  publish(1, 0, 2);
  end_averagings();
  EXPECT_EQ(has_arrived, (std::vector{true, true})) << "its share, to both";
}

TEST_F(LostNodeTest, WhatTheFirstHasDecidedIsPassedOn) {
  auto options = push_sum();
  options.plan_of = [](const std::vector<Rank>&) { return std::make_shared<TakesFromTwo>(0); };
  begin_as<MixCoordinator>(options);
  on_ending(wire::Ending::Phase::ASK, {});
  on_ending(wire::Ending::Phase::DECIDE, Version{0}, {1, 2});
  sent_.clear();
  first_is_lost();
  EXPECT_EQ(sent_, (Said{"to 2: decided 0", "to 2: flushed"})) << "and nothing is asked again";
}

TEST_F(LostNodeTest, WhatTheFirstHasNotDecidedTheNextOneAsksAgain) {
  begin_as<MixCoordinator>(push_sum());
  on_ending(wire::Ending::Phase::ASK, {});
  sent_.clear();
  service_->on_node_gone(NodeId{0}, now);
  EXPECT_EQ(sent_, Said{"to 2: flushed"}) << "it does not lead before all have passed on what they held";
  first_is_lost();
  EXPECT_EQ(sent_, (Said{"to 2: flushed", "to 2: ask"}));
}

TEST_F(LostNodeTest, WishesForAnEndOutliveTheFirst) {
  MixCoordinator::Options options;
  options.plan = std::make_shared<TakesFromTwo>(0.5);
  begin_as<MixCoordinator>(options);
  service_->stop_soon();
  EXPECT_EQ(std::exchange(sent_, {}), Said{"to 0: wish"});
  first_is_lost();
  EXPECT_EQ(sent_, (Said{"to 2: flushed", "to 2: ask"}));
}

TEST_F(LostNodeTest, AGraphBeginsBehindWhatOverlapMayGive) {
  auto options = push_sum();
  options.combine_then_adapt = true;
  options.overlap = 2;
  begin_as<MixCoordinator>(options);
  on_ending(wire::Ending::Phase::ASK, {});
  EXPECT_EQ(sent_, Said{"to 0: begun 1"}) << "when iteration 0 is done exchange 1 may begin";
}

// Workers that come back

TEST_F(LostNodeTest, WhoComesBackBeginsWithTheNextGraph) {
  begin_as<MixCoordinator>(push_sum());
  publish(1, 0, 2);
  end_averagings();
  service_->on_gone(Rank{1}, now);
  EXPECT_EQ(std::exchange(sent_, {}), (Said{"to 0: 1 gone after 0", "to 2: 1 gone after 0"}));
  come_back(1, 2, 7);
  EXPECT_EQ(std::exchange(sent_, {}), Said{"to 0: wish"});
  EXPECT_FALSE(verdict(1));
  on_ending(wire::Ending::Phase::ASK, {});
  EXPECT_EQ(std::exchange(sent_, {}), Said{"to 0: begun 0 with 1"});
  joins_ = 1;
  on_ending(wire::Ending::Phase::DECIDE, Version{4}, {0, 1, 2});
  const auto begins = verdict(1);
  ASSERT_TRUE(begins);
  EXPECT_EQ(begins->next, 5);
  EXPECT_EQ(service_->done(), Version{4});
  on_share(Rank{2}, Version{5}, 3);
  publish(1, 5, 9);
  end_averagings();
  EXPECT_EQ(numbers(1, *window(1).writing())[0], 0.5 * 9 + 0.5 * 3);
}

/// What it has given since the last graph is of that one.
TEST_F(LostNodeTest, AGraphBeginsAfterAllThatTheGoneHaveGiven) {
  MixCoordinator::Options options;
  options.plan = std::make_shared<TakesFromTwo>(0);
  options.combine_then_adapt = true;
  begin_as<MixCoordinator>(options);
  for (int t = 0; t < 3; ++t) {
    publish(1, t, 1);
    end_averagings();
  }
  service_->on_gone(Rank{1}, now);
  sent_.clear();
  come_back(1, 2, 7);
  on_ending(wire::Ending::Phase::ASK, {});
  EXPECT_EQ(sent_, (Said{"to 0: wish", "to 0: begun 3 with 1"}));
}

TEST_F(LostNodeTest, WhoComesBackWhenItsNodeHasAnsweredIsInTheGraphAfterThat) {
  begin_as<MixCoordinator>(push_sum());
  service_->on_gone(Rank{1}, now);
  on_ending(wire::Ending::Phase::ASK, {});
  EXPECT_EQ(std::exchange(sent_, {}), Said{"to 0: begun 0"});
  come_back(1, 2, 7);
  sent_.clear();
  on_ending(wire::Ending::Phase::DECIDE, Version{4}, {0, 2});
  EXPECT_EQ(std::exchange(sent_, {}), Said{"to 0: wish"});
  on_ending(wire::Ending::Phase::ASK, {});
  joins_ = 1;
  on_ending(wire::Ending::Phase::DECIDE, Version{5}, {0, 1, 2}, 2);
  const auto begins = verdict(1);
  ASSERT_TRUE(begins);
  EXPECT_EQ(begins->next, 6);
}

// Also by one that had it of the first, which is lost.
TEST_F(LostNodeTest, AGraphThatIsToldTwiceIsNotTheNextOne) {
  begin_as<MixCoordinator>(push_sum());
  on_ending(wire::Ending::Phase::ASK, {});
  on_ending(wire::Ending::Phase::DECIDE, Version{0}, {1, 2});
  service_->on_gone(Rank{1}, now);
  come_back(1, 2, 7);
  on_ending(wire::Ending::Phase::ASK, {});
  sent_.clear();
  on_ending(wire::Ending::Phase::DECIDE, Version{0}, {1, 2});
  EXPECT_EQ(sent_, Said{}) << "the one that is asked for is to come";
}

TEST_F(LostNodeTest, WhoDiesBeforeItsGraphIsDecidedHasGivenNothingOfIt) {
  begin_as<MixCoordinator>(push_sum());
  service_->on_gone(Rank{1}, now);
  come_back(1, 2, 7);
  on_ending(wire::Ending::Phase::ASK, {});
  service_->on_gone(Rank{1}, now);
  sent_.clear();
  joins_ = 1;
  on_ending(wire::Ending::Phase::DECIDE, Version{4}, {0, 1, 2});
  EXPECT_EQ(sent_, (Said{"to 0: 1 gone after 4", "to 2: 1 gone after 4"}));
  EXPECT_FALSE(verdict(1));
}

TEST_F(LostNodeTest, AGraphThatBeginsAfterTheEndIsTheEnd) {
  begin_as<MixCoordinator>(push_sum());
  service_->on_gone(Rank{1}, now);
  come_back(1, 2, 7);
  on_ending(wire::Ending::Phase::ASK, {});
  joins_ = 1;
  sent_.clear();
  on_ending(wire::Ending::Phase::DECIDE, Version{9}, {0, 1, 2});
  end_averagings();
  EXPECT_FALSE(verdict(1));
  EXPECT_EQ(sent_, Said{}) << "it has done no last iteration, and has no part in the end's mean";
}

TEST_F(LostNodeTest, WhoJoinsHasNoPartInTheMeansOfWhatWasBefore) {
  auto job = LostNodeTest::job();
  job.node_of = {NodeId{0}, NodeId{1}, NodeId{1}};
  job.evaluates = true;
  job.evaluate_every = 3;
  service_ = service<MixCoordinator>(job, send(), push_sum());
  join(1);
  join(2);
  service_->on_gone(Rank{2}, now);
  come_back(2, 1, 7);
  on_ending(wire::Ending::Phase::ASK, {});
  joins_ = 2;
  on_ending(wire::Ending::Phase::DECIDE, Version{4}, {0, 1, 2});
  sent_.clear();
  for (int t = 0; t < 3; ++t) {
    publish(1, t, 1);
    end_averagings();
  }
  EXPECT_EQ(sent_, Said{"to 0: part of 1 in the mean after 2"});
  service_->on_gone(Rank{2}, now);
  EXPECT_EQ(service_->begins_with(Rank{2}), Version{5}) << "it was to begin that, and may have";
}

TEST_F(LostNodeTest, TheFirstSaysWhoJoins) {
  auto job = LostNodeTest::job();
  job.self = NodeId{0};
  job.node_of = {NodeId{0}, NodeId{1}};
  service_ = service<MixCoordinator>(job, send(), push_sum());
  join(0);
  sent_.clear();
  const auto say = [&](wire::Ending::Phase phase) {
    wire::Message message;
    auto body = message.root().initEnding();
    body.setPhase(phase);
    body.setGraph(true);
    body.initBegun(1)[0].setRank(1);
    service_->on_message(NodeId{1}, message.root().asReader(), {}, now);
  };
  say(wire::Ending::Phase::WISH);
  say(wire::Ending::Phase::ANSWER);
  EXPECT_EQ(sent_, (Said{"to 1: ask", "to 1: decided 0 with 1"}));
}

}  // namespace
}  // namespace paceline::scheduler
