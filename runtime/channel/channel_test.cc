// One contract, two ways: every test runs on rings in shared memory and on ZeroMQ.
#include "runtime/channel/channel.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>

#include "runtime/base/test_directory.h"
#include "runtime/channel/ring_channel.h"
#include "runtime/channel/zmq_channel.h"
#include "runtime/store/shared_memory.h"
#include "runtime/transport/zmq/zmq_transport.h"

namespace paceline::channel {
namespace {

using namespace std::chrono_literals;

Frame frame(const std::string& text) {
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + text.size()};
}

std::string text(const Message& message) {
  std::string all;
  for (const Frame& frame : message) {
    if (&frame != &message.front()) all += '|';
    all.append(reinterpret_cast<const char*>(frame.data()), frame.size());
  }
  return all;
}

Result<void> say(Channel& channel, const Message& message, Duration patience = 10s) {
  return channel.send(message, patience);
}

std::string hear(Channel& channel, Duration timeout = 10s) {
  Message message;
  const auto came = channel.receive(message, timeout);
  if (!came) return "error: " + came.error().text;
  return *came ? text(message) : "nothing";
}

std::vector<process::Fd> copies(const std::vector<process::BorrowedFd>& descriptors) {
  std::vector<process::Fd> all;
  for (const auto fd : descriptors) all.push_back(fd.duplicate());
  return all;
}

struct Pair {
  std::unique_ptr<test::TestDirectory> directory;
  std::unique_ptr<Channel> agent, worker;
};

Pair rings() {
  Pair pair;
  auto made = RingChannel::create({.to_maker = 1, .from_maker = 1, .other_has_bell = true}).value();
  pair.worker = RingChannel::open(copies(made->descriptors())).value();
  pair.agent = std::move(made);
  return pair;
}

Pair zeromq() {
  Pair pair;
  pair.directory = std::make_unique<test::TestDirectory>();
  const auto endpoint = [](const char* name) {
    return transport::ZmqTransport::create({.self = name, .queue_bound = 64}).value();
  };
  auto agent = endpoint("agent");
  (void)agent->listen(pair.directory->ipc("a")).value();
  auto worker = endpoint("worker");
  (void)worker->connect("agent", pair.directory->ipc("a"));
  while (!agent->poll(10s)) {  // Connected.
  }
  pair.agent = std::make_unique<ZmqChannel>(std::move(agent), "worker");
  pair.worker = std::make_unique<ZmqChannel>(std::move(worker), "agent");
  return pair;
}

class ChannelTest : public testing::TestWithParam<Pair (*)()> {
 protected:
  Pair pair = GetParam()();
  Channel& agent = *pair.agent;
  Channel& worker = *pair.worker;
};

INSTANTIATE_TEST_SUITE_P(Ways, ChannelTest, testing::Values(&rings, &zeromq),
                         [](const auto& way) { return std::string(way.index == 0 ? "rings" : "zeromq"); });

TEST_P(ChannelTest, MessagesArriveInOrderBothWays) {
  for (const char* word : {"one", "two", "three"}) ASSERT_TRUE(say(worker, {frame(word)}));
  ASSERT_TRUE(say(agent, {frame("back")}));
  for (const char* word : {"one", "two", "three"}) EXPECT_EQ(hear(agent), word);
  EXPECT_EQ(hear(worker), "back");
  EXPECT_EQ(hear(agent, 0ns), "nothing");
}

TEST_P(ChannelTest, FramesStayApart) {
  ASSERT_TRUE(say(worker, {frame("first"), frame(""), frame("third")}));
  EXPECT_EQ(hear(agent), "first||third");
}

TEST_P(ChannelTest, WhatIsBeyondTheBoundsIsRefused) {
  EXPECT_EQ(say(worker, {}).error().kind, ErrorKind::invalid);
  EXPECT_EQ(say(worker, Message(Channel::kFramesMax + 1, frame("x"))).error().kind, ErrorKind::invalid);
  EXPECT_TRUE(say(worker, Message(Channel::kFramesMax, frame("x"))));
  EXPECT_EQ(hear(agent).size(), 2 * Channel::kFramesMax - 1);
}

TEST_P(ChannelTest, NothingIsDroppedWhenTheOtherEndDoesNotRead) {
  int sent = 0;
  while (sent < 1'000'000) {
    const auto done = say(worker, {frame(std::to_string(sent))}, 0ns);
    if (!done) {
      EXPECT_EQ(done.error().kind, ErrorKind::overloaded);
      break;
    }
    ++sent;
  }
  ASSERT_LT(sent, 1'000'000) << "a channel without a bound";
  for (int i = 0; i < sent; ++i) ASSERT_EQ(hear(agent), std::to_string(i));
  EXPECT_EQ(hear(agent, 50ms), "nothing");
  EXPECT_TRUE(say(worker, {frame("again")}));
  EXPECT_EQ(hear(agent), "again");
}

TEST_P(ChannelTest, ASenderWaitsForRoom) {
  constexpr int kCount = 20'000;
  std::thread reader([&] {
    for (int i = 0; i < kCount; ++i) ASSERT_EQ(hear(agent), std::to_string(i));
  });
  for (int i = 0; i < kCount; ++i) ASSERT_TRUE(say(worker, {frame(std::to_string(i))}));
  reader.join();
}

TEST_P(ChannelTest, AMessageOfAnySizeArrivesWhole) {
  std::mt19937 random(1);
  for (const std::size_t size : {4087u, 4088u, 4089u, 8192u, 100'000u, 5'000'000u}) {
    std::string large(size, '\0');
    for (char& c : large) c = static_cast<char>(random());
    std::thread sender([&] { ASSERT_TRUE(say(worker, {frame("head"), frame(large), frame("tail")})); });
    Message message;
    const auto came = agent.receive(message, 30s);
    sender.join();
    ASSERT_TRUE(came && *came);
    ASSERT_EQ(message.size(), 3u);
    EXPECT_TRUE(message[1] == frame(large)) << size;
    EXPECT_EQ(message[2], frame("tail"));
  }
}

TEST_P(ChannelTest, BothEndsMaySendAtOnce) {
  constexpr int kCount = 5'000;
  const auto exchange = [](Channel& mine, const std::string& name, const std::string& other) {
    for (int i = 0, heard = 0; i < kCount || heard < kCount;) {
      if (i < kCount && say(mine, {frame(name + std::to_string(i))}, 0ns)) ++i;
      while (heard < kCount) {
        const std::string word = hear(mine, 0ns);
        if (word == "nothing") break;
        ASSERT_EQ(word, other + std::to_string(heard++));
      }
    }
  };
  std::thread there([&] { exchange(worker, "w", "a"); });
  exchange(agent, "a", "w");
  there.join();
}

TEST_P(ChannelTest, TheDescriptorTellsOfMessages) {
  const auto readable = [&](int timeout_ms) {
    pollfd waiting{agent.descriptor(), POLLIN, 0};
    return ::poll(&waiting, 1, timeout_ms) == 1;
  };
  for (int round = 0; round < 200; ++round) {
    while (hear(agent, 0ns) != "nothing") {
    }
    ASSERT_TRUE(say(worker, {frame("news")}));
    std::string heard;
    for (int looks = 0; looks < 100 && heard != "news"; ++looks) {
      ASSERT_TRUE(readable(10'000));
      heard = hear(agent, 0ns);
    }
    ASSERT_EQ(heard, "news");
  }
  while (hear(agent, 0ns) != "nothing") {
  }
  EXPECT_FALSE(readable(20));
}

TEST_P(ChannelTest, ReceiveGivesUpAfterItsTimeout) {
  EXPECT_EQ(hear(agent, 0ns), "nothing");
  EXPECT_EQ(hear(agent, 20ms), "nothing");
}

// Of rings only
// -----------------------------------------------------------------------------------------------------------------

struct RingPair {
  std::unique_ptr<RingChannel> agent = RingChannel::create({.to_maker = 1, .from_maker = 1}).value();
  std::unique_ptr<RingChannel> worker = RingChannel::open(copies(agent->descriptors())).value();
};

TEST(RingChannelTest, AForkedCopyIsToldSo) {
  RingPair pair;
  const pid_t child = ::fork();
  if (child == 0) {
    const auto sent = pair.worker->send(Message{frame("x")}, 0ns);
    Message none;
    _exit(!sent && sent.error().kind == ErrorKind::disconnected && !pair.worker->receive(none, 0ns) ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(say(*pair.worker, {frame("mine")}));
  EXPECT_EQ(hear(*pair.agent), "mine");
}

TEST(RingChannelTest, WhatWasSentBeforeADeathIsReceived) {
  RingPair pair;
  auto descriptors = copies(pair.agent->descriptors());
  const pid_t child = ::fork();
  if (child == 0) {  // Opens an end of its own, sends without end, is killed in the midst of it.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    auto mine = RingChannel::open(std::move(descriptors)).value();
    for (int i = 0; mine->send(Message{frame(std::to_string(i))}, -1ns); ++i) {
    }
    _exit(1);
  }
  descriptors.clear();
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(hear(*pair.agent), std::to_string(i));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  int next = 1000;
  while (true) {
    const std::string heard = hear(*pair.agent, 0ns);
    if (heard == "nothing") break;
    ASSERT_EQ(heard, std::to_string(next++));
  }
}

TEST(RingChannelTest, AMessageGivenUpHalfWayEndsTheChannel) {
  RingPair pair;
  const auto sent = say(*pair.worker, {Frame(100'000)}, 10ms);
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().kind, ErrorKind::disconnected);
  EXPECT_EQ(say(*pair.worker, {frame("x")}).error().kind, ErrorKind::disconnected);
  EXPECT_EQ(hear(*pair.agent, 0ns), "nothing");  // Never half a message.
}

TEST(RingChannelTest, OnlyTheMemoryOfAChannelIsOpened) {
  EXPECT_FALSE(RingChannel::open({}));
  const process::BorrowedFd input(STDIN_FILENO);
  EXPECT_FALSE(RingChannel::open(copies({input, input})));
  const auto fd =
      store::create_memory({.name = "x", .size = 3 * 4096, .sealed = store::MemoryShape::Sealed::later}).value();
  EXPECT_FALSE(RingChannel::open(copies({fd, fd}))) << "not sealed";
  ASSERT_TRUE(store::seal_size(fd));
  EXPECT_FALSE(RingChannel::open(copies({fd, fd}))) << "empty";
  const std::uint64_t head[] = {0x31676e6972636170, 4096, std::uint64_t{1} << 63};
  ASSERT_EQ(::pwrite(fd.get(), head, sizeof head, 0), static_cast<ssize_t>(sizeof head));
  EXPECT_FALSE(RingChannel::open(copies({fd, fd}))) << "larger than the memory";
}

/// The other end writes whatever it likes into the memory, at any time: a message comes out, or the channel's end.
TEST(RingChannelTest, AnyBytesInTheMemoryAreAnswered) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    RingPair pair;
    const int memory = pair.agent->descriptors()[0].get();
    for (int step = 0; step < 60; ++step) {
      if (random() % 3 == 0) (void)pair.worker->send(Message{Frame(random() % 3000)}, 0ns);
      if (random() % 3 == 0) {
        std::byte noise[16];
        for (auto& byte : noise) byte = static_cast<std::byte>(random() % 4 == 0 ? random() : 0);
        // Heads of the rings half of the time, their bytes else.
        const auto at = random() % 2 == 0 ? 24 + random() % 640 : random() % (3 * 4096 - 16);
        (void)!::pwrite(memory, noise, sizeof noise, static_cast<off_t>(at));
      }
      Message message;
      const auto came = pair.agent->receive(message, 0ns);
      ASSERT_TRUE(came || came.error().kind == ErrorKind::disconnected);
      (void)pair.agent->send(Message{Frame(random() % 100)}, 0ns);
    }
  }
}

}  // namespace
}  // namespace paceline::channel
