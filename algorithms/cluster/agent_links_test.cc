#include "algorithms/cluster/agent_links.h"

#include <gtest/gtest.h>

#include "algorithms/cluster/requests.h"
#include "runtime/base/test_directory.h"
#include "runtime/transport/sim/sim_network.h"

namespace paceline::cluster {
namespace {

/// Node 1, linked to node 0, which is only an endpoint here.
class AgentLinksTest : public testing::Test {
 protected:
  AgentLinksTest() {
    EXPECT_TRUE(zero_->listen("sim:agent/0"));
    EXPECT_TRUE(sut_.watch(loop_));
    wire::Message message;
    message.root().initNodes().initNodes(1)[0].setAddress("sim:agent/0");
    sut_.on_nodes(message.root().asReader().getNodes());
    deliver();
    EXPECT_EQ(told_, "");
  }

  void deliver() {
    network_.advance(network_.now() + std::chrono::milliseconds(1));
    sut_.tick(network_.now());
  }
  void send(const transport::Peer& peer) {
    wire::Message message;
    message.root().initAlive();
    sut_.send(peer, message);
  }

  test::TestDirectory directory_;
  transport::SimNetwork network_{1};
  EventLoop loop_ = *EventLoop::create();
  observe::Log log_ = *observe::Log::open(directory_.path / "agent.log", "agent");
  std::unique_ptr<transport::Transport> zero_ = network_.endpoint("agent/0");
  std::string told_;
  AgentLinks sut_{{NodeId{1}, "sim:head"},
                  network_.endpoint("agent/1"),
                  network_,
                  TurnBudget::kMessages,
                  log_,
                  {.turn = [] {},
                   .message = [this](const transport::Peer& peer, const auto&, auto&) { told_ += peer + " said. "; },
                   .head_gone = [this] { told_ += "head gone. "; },
                   .gone = [this](NodeId node, const std::string&) { told_ += to_string(node) + " gone. "; },
                   .unsent = [this](NodeId node, const Error&) { told_ += "unsent to " + to_string(node) + ". "; },
                   .reachable = [](NodeId, const auto&) {}}};
};

TEST_F(AgentLinksTest, WhatCannotBeSentToAnAgentIsTold) {
  send("agent/0");
  send(kHead);  // It is told what it has to know when it is back.
  EXPECT_EQ(told_, "");
  send("agent/7");
  EXPECT_EQ(told_, "unsent to 7. ");
}

TEST_F(AgentLinksTest, NothingIsSentToOneThatIsLostBeforeItSaysSomething) {
  network_.kill("agent/0");
  deliver();
  EXPECT_EQ(std::exchange(told_, ""), "0 gone. ");
  zero_ = network_.endpoint("agent/0");
  ASSERT_TRUE(zero_->listen("sim:agent/0"));
  deliver();
  send("agent/0");
  EXPECT_EQ(std::exchange(told_, ""), "unsent to 0. ");
  wire::Message alive;
  alive.root().initAlive();
  ASSERT_TRUE(zero_->send("agent/1", {alive.to_frame()}));
  deliver();
  send("agent/0");
  EXPECT_EQ(told_, "agent/0 said. ");
}

}  // namespace
}  // namespace paceline::cluster
