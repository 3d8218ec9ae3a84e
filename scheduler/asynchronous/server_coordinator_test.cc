#include "scheduler/asynchronous/server_coordinator.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/shell/averaging_service_test_support.h"

namespace paceline::scheduler {
namespace {

using Phase = wire::Exchange::Phase;
using Said = std::vector<std::string>;

/// The service of node 1, of three with a worker each. All begin at 0; the server is at node 0 until that is lost.
class ServerIsLost : public ServiceTest {
 protected:
  ServerIsLost() { begin_anew({.workers = 3}); }

  void begin_anew(const ServerEngine::Options& options) {
    auto job = two_workers();
    job.node_of = {NodeId{0}, NodeId{1}, NodeId{2}};
    job.self = NodeId{1};
    job.evaluates = false;
    const auto send = [this](NodeId to, wire::Message& message, const std::vector<Piece>& bulk) {
      const auto envelope = message.root().asReader();
      if (!envelope.isExchange()) return;
      const auto exchange = envelope.getExchange();
      std::string text = "to " + to_string(to) + ": ";
      if (exchange.getPhase() == Phase::PUSH) text += "push of";
      if (exchange.getPhase() == Phase::PULL) text += "pull for";
      if (exchange.getPhase() == Phase::MODEL) text += "model for";
      if (exchange.getPhase() == Phase::BACK) text += "back";
      text += " " + std::to_string(exchange.getRank()) + " at " + std::to_string(exchange.getVersion());
      if (!bulk.empty()) text += ", " + std::to_string(static_cast<int>(first_of(bulk.front().bytes)));
      sent_.push_back(text);
    };
    service_ = service<ServerCoordinator>(job, send, options);
    join(1);
    sent_.clear();
  }

  static double first_of(std::span<const std::byte> bytes) { return *reinterpret_cast<const double*>(bytes.data()); }

  void say(NodeId from, Phase phase, int rank, int version, double number, const std::vector<int>& applied = {}) {
    wire::Message message;
    auto body = message.root().initExchange();
    body.setPhase(phase);
    body.setRank(rank);
    body.setVersion(version);
    auto list = body.initApplied(static_cast<unsigned>(applied.size()));
    for (unsigned i = 0; i < list.size(); ++i) list.set(i, applied[i]);
    const std::vector<double> numbers(kElements, number);
    const auto bytes = std::as_bytes(std::span(numbers));
    service_->on_message(from, message.root().asReader(), {bytes.begin(), bytes.end()}, now);
    end_averagings();
  }
  /// Node 2 has passed on what it held.
  void second_has_flushed() {
    wire::Message message;
    message.root().initFlushed().initLost(1).set(0, 0);
    service_->on_message(NodeId{2}, message.root().asReader(), {}, now);
    end_averagings();
  }
  double result() { return numbers(1, *window(1).writing())[0]; }

  std::vector<std::string> sent_;
};

TEST_F(ServerIsLost, AStepThatItHadIsAddedNoSecondTime) {
  publish(1, 0, 5);
  end_averagings();
  EXPECT_EQ(std::exchange(sent_, {}), Said{"to 0: push of 1 at 0, 5"});
  service_->on_node_gone(NodeId{0}, now);
  say(NodeId{2}, Phase::MODEL, 0, 0, 8, {-1, 0, 0});  // With 3 of worker 2.
  second_has_flushed();
  EXPECT_EQ(result(), 8);
}

TEST_F(ServerIsLost, AStepThatItHadNotIsAdded) {
  publish(1, 0, 5);
  end_averagings();
  service_->on_node_gone(NodeId{0}, now);
  say(NodeId{2}, Phase::MODEL, 0, 0, 3, {-1, -1, 0});
  second_has_flushed();
  EXPECT_EQ(result(), 8);
}

TEST_F(ServerIsLost, TheNewestModelOfAllIsGoneOnFrom) {
  publish(1, 0, 5);
  end_averagings();
  say(NodeId{0}, Phase::PULL, 1, 0, 9, {0, 0, -1});
  EXPECT_EQ(result(), 9);
  service_->on_node_gone(NodeId{0}, now);
  say(NodeId{2}, Phase::MODEL, 0, 0, 3, {-1, -1, 0});  // Older.
  second_has_flushed();
  publish(1, 1, 10);  // A step of 1.
  end_averagings();
  EXPECT_EQ(result(), 10);
}

/// Before this node had the server.
TEST_F(ServerIsLost, NobodyWaitsForWhoWasGone) {
  begin_anew({.workers = 3, .bound = 0});
  service_->on_gone(Rank{1}, now);
  service_->on_node_gone(NodeId{0}, now);
  say(NodeId{2}, Phase::MODEL, 0, 0, 7, {-1, -1, 0});
  second_has_flushed();
  sent_.clear();
  say(NodeId{2}, Phase::PUSH, 2, 1, 1);
  EXPECT_EQ(sent_, Said{"to 2: pull for 2 at 1, 8"});
}

/// Node 2 has gone on without node 0 before this one.
TEST_F(ServerIsLost, APushThatComesEarlyIsAnsweredOnce) {
  service_->on_node_gone(NodeId{0}, now);
  sent_.clear();
  say(NodeId{2}, Phase::PUSH, 2, 4, 2);
  EXPECT_EQ(sent_, Said{}) << "not yet the server";
  second_has_flushed();
  EXPECT_EQ(sent_, Said{"to 2: pull for 2 at 4, 2"});
  say(NodeId{2}, Phase::PUSH, 2, 4, 2);
  EXPECT_EQ(sent_.size(), 1U) << "pushed twice";
}

TEST_F(ServerIsLost, WhoHasPulledWhatIsInTheModelIsOwedNothing) {
  service_->on_node_gone(NodeId{0}, now);
  say(NodeId{2}, Phase::MODEL, 0, 0, 7, {-1, -1, 3});
  second_has_flushed();
  sent_.clear();
  say(NodeId{2}, Phase::PUSH, 2, 4, 1);
  EXPECT_EQ(std::exchange(sent_, {}), Said{"to 2: pull for 2 at 4, 8"});
  say(NodeId{2}, Phase::PUSH, 2, 3, 1);
  EXPECT_EQ(sent_, Said{}) << "an old one";
}

TEST_F(ServerIsLost, WhoLeadsNextGetsTheModelOfEachOther) {
  say(NodeId{0}, Phase::PULL, 1, 0, 9, {0, -1, -1});  // For nobody who waits: it is the newest all the same.
  service_->on_node_gone(NodeId{0}, now);
  EXPECT_EQ(sent_, Said{}) << "this node itself";
  EXPECT_EQ(result(), 0) << "nor is it given";
}

// Workers that come back

TEST_F(ServerIsLost, WhoComesBackSaysSoAndPushesWhatItAddsToWhatItLoaded) {
  publish(1, 0, 5);
  service_->on_gone(Rank{1}, now);
  EXPECT_FALSE(service_->is_free(Rank{1})) << "its step is being made";
  end_averagings();
  sent_.clear();
  come_back(1, 3, 7);
  EXPECT_EQ(std::exchange(sent_, {}), (Said{"to 0: back 1 at 3", "to 2: back 1 at 3"}));
  say(NodeId{0}, Phase::PULL, 1, 0, 9, {0, 0, -1});  // Of its process before.
  publish(1, 4, 10);
  end_averagings();
  EXPECT_EQ(sent_, Said{"to 0: push of 1 at 4, 3"});
}

TEST_F(ServerIsLost, TheNextServerAddsWhatWhoIsBackWaitsWith) {
  service_->on_gone(Rank{1}, now);
  come_back(1, 3, 7);
  publish(1, 4, 8);
  end_averagings();
  sent_.clear();
  service_->on_node_gone(NodeId{0}, now);
  say(NodeId{2}, Phase::MODEL, 0, 0, 3, {-1, -1, 0});
  second_has_flushed();
  EXPECT_EQ(result(), 4);
}

/// Node 0 has the server, and a worker.
class ServerTest : public ServerIsLost {
 protected:
  ServerTest() {
    auto job = two_workers();
    job.node_of = {NodeId{0}, NodeId{1}};
    job.evaluates = false;
    const auto send = [this](NodeId, wire::Message& message, const auto&) {
      const auto exchange = message.root().asReader().getExchange();
      if (exchange.getPhase() == Phase::PULL) pulled_.push_back(static_cast<int>(exchange.getVersion()));
    };
    service_ = service<ServerCoordinator>(job, send, ServerEngine::Options{.workers = 2, .bound = 0});
    join(0);
    (void)verdict(0);
  }
  void step(int t) {
    publish(0, t, t);
    end_averagings();
  }
  /// Two workers of this node.
  void begin_with_two() {
    begin(service<ServerCoordinator>(two_workers(), nowhere(), ServerEngine::Options{.workers = 2, .bound = 9}));
  }
  void say_gone() {
    wire::Message message;
    message.root().initGone().setRank(1);
    service_->on_message(NodeId{1}, message.root().asReader(), {}, now);
    end_averagings();
  }
  std::vector<int> pulled_;
};

TEST_F(ServerTest, WhoIsBackIsWaitedForFromWhatItCountsAsHavingDone) {
  step(0);
  EXPECT_FALSE(verdict(0)) << "the bound";
  say_gone();
  EXPECT_TRUE(verdict(0));
  step(1);
  EXPECT_TRUE(verdict(0));
  say(NodeId{1}, Phase::BACK, 1, 1, 0);
  step(2);
  EXPECT_FALSE(verdict(0)) << "it has done as many as worker 1, and now one more";
  say(NodeId{1}, Phase::PUSH, 1, 2, 5);
  EXPECT_TRUE(verdict(0));
  EXPECT_EQ(pulled_, std::vector<int>{2});
}

TEST_F(ServerTest, ThatSomebodyIsBackIsHeardOfItsOwnNodeOnly) {
  say_gone();
  say(NodeId{1}, Phase::BACK, 0, 5, 0);
  say(NodeId{1}, Phase::BACK, 7, 5, 0);
  step(0);
  EXPECT_TRUE(verdict(0));
}

/// The server counts it from there on.
TEST_F(ServerTest, OneThatIsKilledBeforeItsFirstStepComesBackWithNoEarlierOne) {
  begin_with_two();
  publish(1, 0, 5);
  end_averagings();
  service_->on_gone(Rank{1}, now);
  end_averagings();
  come_back(1, 5, 7);
  service_->on_gone(Rank{1}, now);
  EXPECT_EQ(service_->begins_with(Rank{1}), Version{6});
}

}  // namespace
}  // namespace paceline::scheduler
