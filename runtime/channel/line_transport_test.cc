#include "runtime/channel/line_transport.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "runtime/base/steady_now.h"
#include "runtime/base/test_directory.h"
#include "runtime/transport/zmq/zmq_transport.h"

namespace paceline::channel {
namespace {

using namespace std::chrono_literals;
using transport::Event;
using transport::Transport;
using Pieces = std::vector<Frame>;

std::unique_ptr<Transport> zeromq(const std::string& name) { return *transport::ZmqTransport::create({.self = name}); }

std::unique_ptr<Transport> beside(const std::string& name) { return *LineTransport::beside(zeromq(name), name); }

/// A message with a number in it, of so many bytes.
Pieces numbered(std::uint64_t number, std::size_t bytes) {
  Pieces message(1, Frame(std::max(bytes, sizeof number)));
  std::memcpy(message[0].data(), &number, sizeof number);
  return message;
}

std::vector<std::uint64_t> up_to(std::uint64_t count) {
  std::vector<std::uint64_t> numbers;
  for (std::uint64_t i = 0; i < count; ++i) numbers.push_back(i);
  return numbers;
}

class LineTransportTest : public testing::Test {
 protected:
  explicit LineTransportTest(bool with_lines = true)
      : agent(beside("agent")), driver(with_lines ? beside("driver") : zeromq("driver")) {
    EXPECT_TRUE(agent->listen(address()));
    EXPECT_TRUE(driver->connect("agent", address()));
    EXPECT_TRUE(wait_for(*agent, Event::Kind::connected));
    EXPECT_TRUE(wait_for(*driver, Event::Kind::connected));
    for (int i = 0; i < 20; ++i) serve();  // The line is known to both.
  }

  std::string address() const { return directory.ipc("agent"); }
  LineTransport& of(std::unique_ptr<Transport>& one) { return dynamic_cast<LineTransport&>(*one); }

  void serve() {
    EXPECT_FALSE(agent->poll(1ms));
    EXPECT_FALSE(driver->poll(1ms));
  }

  static std::optional<Event> wait_for(Transport& at, Event::Kind kind) {
    for (const Instant end = steady_now() + 10s; steady_now() < end;)
      if (auto event = at.poll(100ms)) {
        EXPECT_EQ(event->kind, kind);
        return event;
      }
    return std::nullopt;
  }

  /// Small messages, both ways.
  void exchange_some() {
    for (std::uint64_t i = 0; i < 3; ++i) {
      ASSERT_TRUE(driver->send("agent", numbered(i, 64)));
      ASSERT_TRUE(agent->send("driver", numbered(i, 64)));
    }
    EXPECT_EQ(hear(*agent, 3), up_to(3));
    EXPECT_EQ(hear(*driver, 3), up_to(3));
  }

  /// The numbers of the messages that come, until there are so many, or nothing comes.
  static std::vector<std::uint64_t> hear(Transport& at, std::size_t count, Duration patience = 5s) {
    std::vector<std::uint64_t> numbers;
    while (numbers.size() < count) {
      const auto event = at.poll(patience);
      if (!event || event->kind != Event::Kind::message) break;
      std::uint64_t number = 0;
      std::memcpy(&number, event->frames.at(0).data(), sizeof number);
      numbers.push_back(number);
    }
    return numbers;
  }

  test::TestDirectory directory;
  std::unique_ptr<Transport> agent, driver;
};

TEST_F(LineTransportTest, SmallMessagesGoByTheLineBothWays) {
  exchange_some();
  EXPECT_EQ(of(driver).by_line("agent").sent, 3U);
  EXPECT_EQ(of(driver).by_line("agent").come, 3U);
}

TEST_F(LineTransportTest, LargeOnesGoBelowAndNoneOvertakesAnother) {
  std::mt19937 random(7);
  const std::size_t sizes[] = {8, 64, 1000, Lines::kMessageMax, Lines::kMessageMax + 1, 100'000, 2'000'000};
  constexpr std::uint64_t kCount = 3000;
  for (auto [from, to, name] : {std::tuple{&driver, &agent, "agent"}, {&agent, &driver, "driver"}}) {
    std::vector<std::uint64_t> heard;
    for (std::uint64_t i = 0; i < kCount;) {
      auto message = numbered(i, sizes[random() % 40 == 0 ? 4 + random() % 3 : random() % 4]);
      if ((*from)->send(name, std::move(message))) {
        ++i;
      } else {  // Full.
        const auto some = hear(**to, 1 + random() % 50, 0s);
        heard.insert(heard.end(), some.begin(), some.end());
      }
    }
    const auto rest = hear(**to, kCount - heard.size());
    heard.insert(heard.end(), rest.begin(), rest.end());
    EXPECT_EQ(heard, up_to(kCount));
    EXPECT_GT(of(*from).by_line(name).sent, kCount / 2);
    EXPECT_LT(of(*from).by_line(name).sent, kCount);
  }
}

TEST_F(LineTransportTest, WhatAProcessSaidBeforeItEndedIsHeardAndThenItsEnd) {
  for (std::uint64_t i = 0; i < 100; ++i) ASSERT_TRUE(driver->send("agent", numbered(i, i % 10 == 0 ? 50'000 : 64)));
  driver.reset();
  EXPECT_EQ(hear(*agent, 100), up_to(100));
  const auto gone = wait_for(*agent, Event::Kind::disconnected);
  ASSERT_TRUE(gone);
  EXPECT_EQ(gone->peer, "driver");
  EXPECT_FALSE(agent->send("driver", numbered(0, 8)));
  driver = beside("driver");  // Of the same name.
  ASSERT_TRUE(driver->connect("agent", address()));
  ASSERT_TRUE(driver->send("agent", numbered(0, 8)));
  EXPECT_TRUE(wait_for(*agent, Event::Kind::connected));
  EXPECT_EQ(hear(*agent, 1), up_to(1));
}

TEST_F(LineTransportTest, WhoIsDisconnectedIsHeardNoMore) {
  ASSERT_TRUE(driver->send("agent", numbered(0, 64)));
  agent->disconnect("driver");
  EXPECT_TRUE(wait_for(*driver, Event::Kind::disconnected));
  EXPECT_FALSE(agent->poll(50ms));
}

TEST_F(LineTransportTest, ALineThatIsNotReadIsFullAndThenGoesOn) {
  std::uint64_t sent = 0;
  while (driver->send("agent", numbered(sent, 1000))) ++sent;
  EXPECT_GT(sent, 50U);
  EXPECT_LT(sent, 1000U);
  EXPECT_EQ(hear(*agent, sent), up_to(sent));
  EXPECT_TRUE(driver->send("agent", numbered(sent, 1000)));
}

TEST_F(LineTransportTest, AMarkThatCannotBeTrueEndsTheConnection) {
  Pieces mark(1, Frame(16, std::byte{1}));
  const std::uint64_t words[] = {0xffff'ffff'6b72'616d, 17};
  std::memcpy(mark[0].data(), words, sizeof words);
  auto stranger = zeromq("stranger");
  ASSERT_TRUE(stranger->connect("agent", address()));
  ASSERT_TRUE(stranger->send("agent", std::move(mark)));
  EXPECT_TRUE(wait_for(*agent, Event::Kind::connected));
  const auto gone = wait_for(*agent, Event::Kind::disconnected);
  ASSERT_TRUE(gone);
  EXPECT_EQ(gone->cause, "stranger broke the rules of its line");
}

TEST_F(LineTransportTest, ALineOfSomebodyWhoIsNotConnectedSaysNothing) {
  const auto ignored = [](const auto&...) {};
  auto lines = *Lines::create("stranger", {.called = ignored, .answered = ignored, .ended = ignored});
  ASSERT_TRUE(lines->connect("agent", address().substr(6) + ".line"));
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(lines->send_out("agent", numbered(0, 64)));
  EXPECT_FALSE(agent->poll(50ms));
}

class WithoutLines : public LineTransportTest {
 protected:
  WithoutLines() : LineTransportTest(false) {}
};

TEST_F(WithoutLines, AllGoesBelow) {
  exchange_some();
  EXPECT_EQ(of(agent).by_line("driver").sent, 0U);
}

TEST(LineTransportWay, ZmqIsTheTransportBelow) {
  ASSERT_EQ(setenv("PACELINE_CHANNELS", "zmq", 1), 0);
  const auto plain = beside("agent");
  unsetenv("PACELINE_CHANNELS");
  EXPECT_EQ(dynamic_cast<LineTransport*>(plain.get()), nullptr);
}

}  // namespace
}  // namespace paceline::channel
