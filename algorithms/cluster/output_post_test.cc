#include "algorithms/cluster/output_post.h"

#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/steady_now.h"
#include "runtime/base/test_directory.h"

namespace paceline::cluster {
namespace {

using namespace std::chrono_literals;
using actors::decode;
using actors::Output;
using actors::OutputWanted;

const NodeId kHere{0};
const NodeId kThere{1};

/// Node 0 of three; what it sends is gathered.
class OutputPostTest : public testing::Test {
 protected:
  static Output of_node_1(const std::string& driver, bool all = false) {
    Output output;
    output.to = driver;
    output.bytes = 5;
    output.parts.push_back({"A pid=1 node 1", "a.log", 0, "one\n"});
    output.all = all;
    return output;
  }
  static OutputWanted all() {
    OutputWanted wanted;
    wanted.all = true;
    return wanted;
  }
  static OutputWanted shown(NodeId node, std::uint32_t bytes) {
    OutputWanted wanted;
    wanted.node = node;
    wanted.bytes = bytes;
    return wanted;
  }
  void watch(int worker, const WorkerOutput::Reader& reader, const std::string& text) {
    const std::string log = directory_.path / (std::to_string(worker) + ".log");
    std::ofstream(log) << text;
    sut_.watch({WorkerId(static_cast<std::uint64_t>(worker)), "w", log, 0, reader});
  }
  void tick() { sut_.tick(steady_now()); }

  test::TestDirectory directory_;
  EventLoop loop_ = *EventLoop::create();
  observe::Log log_ = *observe::Log::open(directory_.path / "agent.log", "agent");
  std::set<std::string> drivers_{"driver/1"};
  std::set<NodeId> others_{kThere};
  std::vector<Output> to_driver_;
  std::vector<std::pair<NodeId, Output>> outputs_;
  std::vector<std::pair<NodeId, OutputWanted>> words_;
  OutputPost sut_{kHere,
                  loop_,
                  log_,
                  {.to_driver =
                       [this](const std::string& driver, const actors::Frames& frames) {
                         if (!drivers_.contains(driver)) return false;
                         const auto received = *wire::Received::parse(frames.front());
                         to_driver_.push_back(decode(received.root().getOutput()));
                         return true;
                       },
                   .to_node =
                       [this](NodeId node, const actors::Frames& frames) {
                         const auto received = *wire::Received::parse(frames.front());
                         if (received.root().isOutput())
                           outputs_.emplace_back(node, decode(received.root().getOutput()));
                         if (received.root().isOutputWanted())
                           words_.emplace_back(node, decode(received.root().getOutputWanted()));
                       },
                   .others = [this] { return others_; }}};
};

TEST_F(OutputPostTest, WhatIsPrintedHereGoesToItsDriverOrToTheDriversNode) {
  watch(1, {"driver/1", kHere}, "one\n");
  watch(2, {"driver/2", kThere}, "two\n");
  tick();
  ASSERT_EQ(to_driver_.size(), 1u);
  EXPECT_EQ(to_driver_[0].parts.at(0).lines, "one\n");
  ASSERT_EQ(outputs_.size(), 1u);
  EXPECT_EQ(outputs_[0].first, kThere);
  EXPECT_EQ(outputs_[0].second.to, "driver/2");
  EXPECT_EQ(outputs_[0].second.parts.at(0).lines, "two\n");
}

TEST_F(OutputPostTest, WhatComesFromAnotherNodeIsPassedOnAndSoIsThatItWasShown) {
  sut_.on_output(kThere, of_node_1("driver/1"));
  ASSERT_EQ(to_driver_.size(), 1u);
  EXPECT_EQ(to_driver_[0].node, kThere);
  sut_.on_wanted("driver/1", shown(kThere, 5));
  ASSERT_EQ(words_.size(), 1u);
  EXPECT_EQ(words_[0].first, kThere);
  EXPECT_EQ(words_[0].second.driver, "driver/1");
  EXPECT_EQ(words_[0].second.bytes, 5u);
  sut_.on_wanted("driver/1", shown(NodeId{2}, 5));
  EXPECT_EQ(words_.size(), 1u) << "which has sent nothing";
}

TEST_F(OutputPostTest, WhatAnAgentSaysItselfGoesTheSameWayAndCountsForNothing) {
  sut_.say({"driver/1", kHere}, "one");
  ASSERT_EQ(to_driver_.size(), 1u);
  EXPECT_EQ(to_driver_[0].parts, (std::vector<Output::Part>{{"paceline", "", 0, "one\n"}}));
  EXPECT_EQ(to_driver_[0].bytes, 0u);
  sut_.say({"driver/2", kThere}, "two");
  ASSERT_EQ(outputs_.size(), 1u);
  EXPECT_EQ(outputs_[0].first, kThere);
  EXPECT_EQ(outputs_[0].second.to, "driver/2");
  sut_.say({"driver/3", kHere}, "gone");
  tick();
}

TEST_F(OutputPostTest, AllIsThereWhenAllNodesHaveSentIt) {
  sut_.on_wanted("driver/1", all());
  ASSERT_EQ(words_.size(), 1u);
  EXPECT_TRUE(words_[0].second.all);
  tick();
  ASSERT_EQ(to_driver_.size(), 1u);
  EXPECT_FALSE(to_driver_[0].all) << "of this node only";
  sut_.on_output(kThere, of_node_1("driver/1", true));
  ASSERT_EQ(to_driver_.size(), 2u);
  EXPECT_TRUE(to_driver_[1].all);
}

TEST_F(OutputPostTest, AllMayBeAskedForAgain) {
  for (const bool before_the_last_answer : {true, false}) {
    to_driver_.clear();
    sut_.on_wanted("driver/1", all());
    tick();
    if (!before_the_last_answer) sut_.on_output(kThere, of_node_1("driver/1", true));
    EXPECT_EQ(to_driver_.back().all, !before_the_last_answer);
  }
  EXPECT_EQ(words_.size(), 2u);
}

TEST_F(OutputPostTest, ANodeThatIsLostIsNotWaitedFor) {
  sut_.on_wanted("driver/1", all());
  tick();
  sut_.on_node_gone(kThere);
  tick();
  ASSERT_EQ(to_driver_.size(), 2u);
  EXPECT_TRUE(to_driver_[1].all);
}

TEST_F(OutputPostTest, AnotherNodesDriverGetsAllOfThisNode) {
  watch(1, {"driver/2", kThere}, "half");
  OutputWanted wanted = all();
  wanted.driver = "driver/2";
  sut_.on_wanted(kThere, wanted);
  tick();
  ASSERT_EQ(outputs_.size(), 1u);
  EXPECT_TRUE(outputs_[0].second.all);
  EXPECT_EQ(outputs_[0].second.parts.at(0).lines, "half\n");
}

TEST_F(OutputPostTest, WhereADriverIsGoneNothingIsSentAnyMore) {
  sut_.on_output(kThere, of_node_1("driver/1"));
  watch(1, {"driver/1", kHere}, "one\n");
  drivers_.clear();
  sut_.on_peer_gone("driver/1");
  ASSERT_EQ(words_.size(), 1u);
  EXPECT_TRUE(words_[0].second.gone);
  EXPECT_EQ(words_[0].second.driver, "driver/1");
  tick();
  EXPECT_FALSE(sut_.next_deadline());
  sut_.on_output(kThere, of_node_1("driver/1"));
  ASSERT_EQ(words_.size(), 2u) << "who did not hear of it does now";
  EXPECT_TRUE(words_[1].second.gone);
  watch(2, {"driver/2", kThere}, "two\n");
  OutputWanted gone;
  gone.driver = "driver/2";
  gone.gone = true;
  sut_.on_wanted(kThere, gone);
  tick();
  EXPECT_TRUE(outputs_.empty());
}

}  // namespace
}  // namespace paceline::cluster
