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

}  // namespace
}  // namespace paceline::scheduler
