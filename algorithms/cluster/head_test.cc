#include "algorithms/cluster/head.h"

#include <gtest/gtest.h>

#include <string>

#include "runtime/base/steady_now.h"
#include "runtime/transport/sim/sim_network.h"

namespace paceline::cluster {
namespace {

/// Between two agents that are only endpoints here.
class HeadTest : public testing::Test {
 protected:
  HeadTest() {
    EXPECT_TRUE(transport_->listen("sim:head"));
    for (auto* agent : {&zero_, &one_}) EXPECT_TRUE((*agent)->connect("head", "sim:head"));
    sut_ = std::make_unique<Head>(Head::Options{"cluster", 2}, std::move(transport_));
  }

  void say(transport::Transport& from, wire::Message& message) {
    EXPECT_TRUE(from.send("head", {message.to_frame()}));
    network_.advance(network_.now() + std::chrono::milliseconds(1));
    sut_->poll(steady_now());
  }

  void hello(transport::Transport& from) {
    wire::Message message;
    message.root().initHello().setRole("agent");
    say(from, message);
  }

  void request(transport::Transport& from, const std::string& verb, const std::string& json = "{}") {
    wire::Message message;
    auto body = message.root().initRequest();
    body.setVerb(verb);
    body.setJson(json);
    say(from, message);
  }

  /// The text of the failure that this endpoint was last answered with.
  std::string refused(transport::Transport& to) {
    network_.advance(network_.now() + std::chrono::milliseconds(1));
    std::string text;
    while (auto event = to.poll(Duration::zero())) {
      if (event->kind != transport::Event::Kind::message) continue;
      const auto message = *wire::Received::parse(std::move(event->frames.front()));
      if (message.root().isReply() && !message.root().getReply().getOk())
        text = wire::text(message.root().getReply().getError().getText());
    }
    return text;
  }

  transport::SimNetwork network_{1};
  std::unique_ptr<transport::Transport> zero_ = network_.endpoint("agent/0");
  std::unique_ptr<transport::Transport> one_ = network_.endpoint("agent/1");
  std::unique_ptr<transport::Transport> transport_ = network_.endpoint("head");
  std::unique_ptr<Head> sut_;
};

TEST_F(HeadTest, IsReadyOnceAllNodesAreThereAndReachEachOther) {
  hello(*zero_);
  EXPECT_FALSE(sut_->ready());
  hello(*one_);
  EXPECT_FALSE(sut_->ready()) << "node 1 may not have reached node 0 yet";
  request(*one_, kLinkedVerb);
  EXPECT_TRUE(sut_->ready());
}

TEST_F(HeadTest, TakesNoJobBefore) {
  hello(*zero_);
  hello(*one_);
  request(*zero_, "submit", R"({"workers": 2})");
  EXPECT_NE(refused(*zero_).find("reach each other"), std::string::npos);
  request(*one_, kLinkedVerb);
  request(*zero_, "submit", R"({"workers": 2})");
  EXPECT_EQ(refused(*zero_), "");
}

TEST_F(HeadTest, WhatIsWrongWithARequestIsItsAnswer) {
  hello(*zero_);
  hello(*one_);
  request(*one_, kLinkedVerb);
  request(*zero_, "submit", R"({"workers": 2000000000})");
  EXPECT_EQ(refused(*zero_), "option workers = 2000000000: give a number from 1 to 4096");
  request(*zero_, "submit", "{}");
  EXPECT_EQ(refused(*zero_), "a job needs at least one worker: submit says nothing of it");
  request(*zero_, "submit", R"({"workers": "two"})");
  EXPECT_NE(refused(*zero_).find("workers = two"), std::string::npos);
  request(*zero_, "close", R"({"job": "first"})");
  EXPECT_NE(refused(*zero_).find("type must be number, but is string"), std::string::npos);
  request(*zero_, "stop", R"({"job": [1]})");
  EXPECT_NE(refused(*zero_).find("type must be number, but is array"), std::string::npos);
  request(*zero_, "\xff");
  EXPECT_NE(refused(*zero_).find("knows no request"), std::string::npos);
}

TEST_F(HeadTest, AnAgentsStatusOfAnotherShapeIsTheAskersError) {
  hello(*zero_);
  hello(*one_);
  request(*zero_, "status");
  for (auto* agent : {&zero_, &one_}) {
    wire::Message message;
    auto body = message.root().initReply();
    body.setId(1);
    body.setOk(true);
    body.setJson(R"({"workers": 1, "jobs": [{"job": "one"}]})");
    say(**agent, message);
  }
  EXPECT_NE(refused(*zero_).find("type must be number, but is string"), std::string::npos);
}

}  // namespace
}  // namespace paceline::cluster
