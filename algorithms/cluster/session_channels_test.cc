#include "algorithms/cluster/session_channels.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <utility>

namespace paceline::cluster {
namespace {

using namespace std::chrono_literals;

class SessionChannelsTest : public testing::Test {
 protected:
  std::unique_ptr<channel::RingChannel> open(WorkerId worker) {
    std::vector<process::Fd> copies;
    EXPECT_TRUE(sut_.open(worker, [&](const std::vector<process::BorrowedFd>& fds) {
      for (const auto fd : fds) copies.push_back(fd.duplicate());
      memory_ = fds.front().duplicate();
    }));
    return channel::RingChannel::open(std::move(copies)).value();
  }
  static void say(channel::RingChannel& session, const std::string& text) {
    const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
    ASSERT_TRUE(session.send(channel::Message{channel::Frame(bytes, bytes + text.size())}, 0ns));
  }
  /// What the loop hears in one turn.
  std::string turn() {
    heard_.clear();
    EXPECT_TRUE(loop_.run_once(0ns));
    return heard_;
  }

  EventLoop loop_ = EventLoop::create().value();
  std::string heard_;
  process::Fd memory_;
  SessionChannels sut_{
      loop_,
      {.message =
           [this](WorkerId worker, channel::Frame frame) {
             heard_ +=
                 to_string(worker) + ":" + std::string(reinterpret_cast<const char*>(frame.data()), frame.size()) + " ";
           },
       .broken = [this](WorkerId worker, const Error&) { heard_ += to_string(worker) + " is broken "; }}};
};

TEST_F(SessionChannelsTest, TheLoopHearsWhatSessionsSay) {
  const auto one = open(WorkerId{1});
  const auto two = open(WorkerId{2});
  EXPECT_EQ(turn(), "");
  say(*one, "a");
  say(*one, "b");
  EXPECT_EQ(turn(), "1:a 1:b ");
  EXPECT_EQ(turn(), "");
  say(*two, "c");
  EXPECT_EQ(turn(), "2:c ");
}

TEST_F(SessionChannelsTest, WhoSaysMuchDoesNotKeepTheLoop) {
  const auto one = open(WorkerId{1});
  const auto two = open(WorkerId{2});
  for (int i = 0; i < 500; ++i) say(*one, "x");
  say(*two, "y");
  const std::string first = turn();
  EXPECT_NE(first.find("2:y"), std::string::npos);
  EXPECT_LT(first.size(), 100 * 4u);
  std::string rest;
  for (int turns = 0; turns < 20; ++turns) rest += turn();
  EXPECT_EQ(first.size() + rest.size(), 501 * 4u);
}

TEST_F(SessionChannelsTest, WhatWasSaidBeforeTheEndIsHeard) {
  auto one = open(WorkerId{1});
  for (int i = 0; i < 200; ++i) say(*one, "x");
  one.reset();
  sut_.close(WorkerId{1});
  EXPECT_EQ(heard_.size(), 200 * 4u);
  sut_.close(WorkerId{1});
  EXPECT_EQ(turn(), "");
}

TEST_F(SessionChannelsTest, ABrokenChannelIsSaidOnce) {
  const auto one = open(WorkerId{1});
  const std::uint64_t far = 1 << 30;
  ASSERT_EQ(::pwrite(memory_.get(), &far, sizeof far, 64), static_cast<ssize_t>(sizeof far));  // The ring's tail.
  say(*one, "a");
  ASSERT_EQ(::pwrite(memory_.get(), &far, sizeof far, 64), static_cast<ssize_t>(sizeof far));
  EXPECT_EQ(turn(), "1 is broken ");
  EXPECT_EQ(turn(), "");
}

TEST_F(SessionChannelsTest, ASessionThatAsksAgainGetsAnother) {
  const auto first = open(WorkerId{1});
  say(*first, "old");
  const auto second = open(WorkerId{1});
  EXPECT_EQ(heard_, "1:old ");
  say(*first, "nobody hears this");
  say(*second, "new");
  EXPECT_EQ(turn(), "1:new ");
}

}  // namespace
}  // namespace paceline::cluster
