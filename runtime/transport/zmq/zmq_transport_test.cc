#include "runtime/transport/zmq/zmq_transport.h"

#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include <gtest/gtest.h>
#include <zmq.h>

#include "runtime/base/steady_now.h"
#include "runtime/base/test_directory.h"
#include "runtime/transport/transport_test_support.h"

namespace paceline::transport {
namespace {

using namespace std::chrono_literals;
using test::describe;
using test::message;
using test::TestDirectory;
using Kind = Event::Kind;

Frame bytes(std::string_view text) {
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  return Frame(first, first + text.size());
}

std::string text_of(const Frame& frame) { return {reinterpret_cast<const char*>(frame.data()), frame.size()}; }

std::unique_ptr<Transport> make(ZmqOptions options) {
  auto transport = ZmqTransport::create(std::move(options));
  EXPECT_TRUE(transport) << transport.error().text;
  return std::move(transport).value();
}

/// The next event of `first`, while `others` go about their business; "nothing" after `patience`.
std::string next(Transport& first, std::initializer_list<Transport*> others = {}, Duration patience = 10s) {
  const Instant until = steady_now() + patience;
  while (steady_now() < until) {
    if (auto event = first.poll(1ms)) return describe(*event);
    for (Transport* other : others) (void)other->poll(0ms);
  }
  return "nothing";
}

class ZmqTransportTest : public testing::Test {
 protected:
  TestDirectory directory;
  std::string address = directory.ipc("a");
};

TEST_F(ZmqTransportTest, TwoPeersGreetAndTalkBothWays) {
  auto agent = make({.self = "agent/0"});
  auto worker = make({.self = "worker/1"});
  EXPECT_EQ(agent->listen(address).value(), address);
  ASSERT_TRUE(worker->connect("agent/0", address));
  ASSERT_TRUE(worker->send("agent/0", message("hello")));  // Before the connection is up.
  EXPECT_EQ(next(*agent), "connected worker/1");
  EXPECT_EQ(next(*agent), "message worker/1 hello");
  EXPECT_EQ(next(*worker), "connected agent/0");
  ASSERT_TRUE(agent->send("worker/1", message("welcome")));
  EXPECT_EQ(next(*worker), "message agent/0 welcome");
}

TEST_F(ZmqTransportTest, BelowLinksFramesAreLentAndContestedNamesTold) {
  auto agent = make({.self = "agent/0", .links = true});
  auto worker = make({.self = "worker/1"});
  auto second = make({.self = "worker/1"});
  ASSERT_TRUE(agent->listen(address));
  ASSERT_TRUE(worker->connect("agent/0", address));
  EXPECT_EQ(next(*agent), "connected worker/1");
  const auto keeper = std::make_shared<const Frame>(100'000, std::byte{5});
  ASSERT_TRUE(worker->send_pieces("agent/0", bytes("head"), {{keeper, *keeper}, {nullptr, {}}}));
  auto event = agent->poll(10s);
  ASSERT_TRUE(event && event->frames.size() == 1 && event->pieces.size() == 2);
  EXPECT_EQ(Frame(event->pieces[0].bytes.begin(), event->pieces[0].bytes.end()), *keeper);
  EXPECT_TRUE(event->pieces[1].bytes.empty());
  ASSERT_TRUE(second->connect("agent/0", address));
  EXPECT_EQ(next(*agent), "contested worker/1");
}

TEST_F(ZmqTransportTest, WhoListensIsFoundOutWithoutWaiting) {
  auto agent = make({.self = "agent/0", .trusted = true});
  auto other = make({.self = "agent/1"});
  const auto reach = [&](const std::string& where) {
    Reach found = Reach::unknown;
    for (const Instant until = steady_now() + 10s; found == Reach::unknown && steady_now() < until;)
      found = other->reach(where);
    return found;
  };
  const std::string tcp = *agent->listen("tcp://127.0.0.1:*");
  ASSERT_TRUE(agent->listen(address));
  EXPECT_EQ(reach(tcp), Reach::listens);
  EXPECT_EQ(reach(address), Reach::listens);
  agent.reset();
  EXPECT_EQ(reach(tcp), Reach::refuses);
  EXPECT_EQ(reach(address), Reach::refuses);
  EXPECT_EQ(other->reach("tcp://some.host.name:1"), Reach::unknown);
}

TEST_F(ZmqTransportTest, ConnectingComesBeforeListening) {
  auto worker = make({.self = "w"});
  ASSERT_TRUE(worker->connect("a", address));
  EXPECT_FALSE(worker->poll(30ms));
  auto agent = make({.self = "a"});
  ASSERT_TRUE(agent->listen(address));
  EXPECT_EQ(next(*agent), "connected w");
  EXPECT_EQ(next(*worker), "connected a");
}

TEST_F(ZmqTransportTest, FramesStayApartAndMessagesInOrder) {
  auto agent = make({.self = "a"});
  auto worker = make({.self = "w"});
  ASSERT_TRUE(agent->listen(address));
  ASSERT_TRUE(worker->connect("a", address));
  for (int i = 0; i < 1000; ++i) {
    std::vector<Frame> frames = message(std::to_string(i));
    frames.emplace_back();
    frames.push_back(Frame(static_cast<std::size_t>(i) * 13, std::byte(i)));
    ASSERT_TRUE(worker->send("a", std::move(frames)));
  }
  ASSERT_EQ(next(*agent), "connected w");
  for (int i = 0; i < 1000; ++i) {
    const auto event = agent->poll(10s);
    ASSERT_TRUE(event);
    ASSERT_EQ(event->frames.size(), 3u);
    ASSERT_EQ(text_of(event->frames[0]), std::to_string(i));
    ASSERT_TRUE(event->frames[1].empty());
    ASSERT_EQ(event->frames[2], Frame(static_cast<std::size_t>(i) * 13, std::byte(i)));
  }
}

TEST_F(ZmqTransportTest, BulkFrameOf64MiBArrivesWhole) {
  auto agent = make({.self = "a"});
  auto worker = make({.self = "w"});
  ASSERT_TRUE(agent->listen(address));
  ASSERT_TRUE(worker->connect("a", address));
  Frame bulk(64 << 20);
  for (std::size_t i = 0; i < bulk.size(); i += 4096) bulk[i] = static_cast<std::byte>(i >> 12);
  auto frames = message("bulk");
  frames.push_back(bulk);
  ASSERT_TRUE(worker->send("a", std::move(frames)));
  ASSERT_EQ(next(*agent), "connected w");
  const auto event = agent->poll(30s);
  ASSERT_TRUE(event);
  ASSERT_EQ(event->frames.size(), 2u);
  EXPECT_EQ(event->frames[1], bulk);
}

TEST_F(ZmqTransportTest, SendingToAStrangerIsDisconnected) {
  auto agent = make({.self = "a"});
  EXPECT_EQ(agent->send("nobody", message("x")).error().kind, ErrorKind::disconnected);
}

TEST_F(ZmqTransportTest, MessagesWithoutContentOrWithTooManyFramesAreInvalid) {
  auto worker = make({.self = "w"});
  ASSERT_TRUE(worker->connect("a", address));
  EXPECT_EQ(worker->send("a", {}).error().kind, ErrorKind::invalid);
  EXPECT_EQ(worker->send("a", std::vector<Frame>(1)).error().kind, ErrorKind::invalid);
  EXPECT_EQ(worker->send("a", std::vector<Frame>(65, bytes("x"))).error().kind, ErrorKind::invalid);
}

TEST_F(ZmqTransportTest, FullQueueIsOverloadedAndNeverBlocks) {
  auto worker = make({.self = "w", .queue_bound = 10});
  ASSERT_TRUE(worker->connect("a", address));  // Nobody there: all wait.
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(worker->send("a", message("x"))) << i;
  auto large = message(std::string(100'000, 'x'));
  const auto result = worker->send("a", std::move(large));
  // NOLINTNEXTLINE(bugprone-use-after-move)
  EXPECT_EQ(large, message(std::string(100'000, 'x'))) << "what was not sent is as it was";
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::overloaded);
  auto agent = make({.self = "a"});  // And all arrive in the end.
  ASSERT_TRUE(agent->listen(address));
  EXPECT_EQ(next(*agent), "connected w");
  for (int i = 0; i < 10; ++i) EXPECT_EQ(next(*agent), "message w x");
  EXPECT_FALSE(agent->poll(20ms));
}

TEST_F(ZmqTransportTest, ListenerThatOutrunsAPeerIsOverloadedToo) {
  auto agent = make({.self = "a", .queue_bound = 16});
  auto worker = make({.self = "w", .queue_bound = 16});
  ASSERT_TRUE(agent->listen(address));
  ASSERT_TRUE(worker->connect("a", address));
  ASSERT_EQ(next(*agent), "connected w");
  const std::string large(100'000, 'x');
  std::size_t sent = 0;
  Result<void> result{};
  auto next_one = message(large);
  while ((result = agent->send("w", std::move(next_one))) && ++sent < 100'000) next_one = message(large);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::overloaded);
  // NOLINTNEXTLINE(bugprone-use-after-move)
  EXPECT_EQ(next_one, message(large)) << "what was not sent is as it was";
  ASSERT_EQ(next(*worker), "connected a");
  for (std::size_t i = 0; i < sent; ++i) ASSERT_EQ(next(*worker).size(), large.size() + 10);
}

TEST_F(ZmqTransportTest, PeersEndIsAnEventBehindItsLastMessage) {
  auto agent = make({.self = "a"});
  ASSERT_TRUE(agent->listen(address));
  {
    auto worker = make({.self = "w"});
    ASSERT_TRUE(worker->connect("a", address));
    ASSERT_EQ(next(*agent), "connected w");
    ASSERT_EQ(next(*worker), "connected a");
    for (int i = 0; i < 100; ++i) ASSERT_TRUE(worker->send("a", message(std::to_string(i))));
  }
  for (int i = 0; i < 100; ++i) ASSERT_EQ(next(*agent), "message w " + std::to_string(i));
  EXPECT_EQ(next(*agent), "disconnected w");
  EXPECT_EQ(agent->send("w", message("x")).error().kind, ErrorKind::disconnected);
}

TEST_F(ZmqTransportTest, ListenersEndIsAnEventAtItsPeers) {
  auto worker = make({.self = "w"});
  ASSERT_TRUE(worker->connect("a", address));
  {
    auto agent = make({.self = "a"});
    ASSERT_TRUE(agent->listen(address));
    ASSERT_EQ(next(*agent), "connected w");
    ASSERT_TRUE(agent->send("w", message("last")));
  }
  EXPECT_EQ(next(*worker), "connected a");
  EXPECT_EQ(next(*worker), "message a last");
  EXPECT_EQ(next(*worker), "disconnected a");
  EXPECT_EQ(worker->send("a", message("x")).error().kind, ErrorKind::disconnected);
  auto agent = make({.self = "a"});  // The name is free again on both sides.
  ASSERT_TRUE(agent->listen(address));
  ASSERT_TRUE(worker->connect("a", address));
  EXPECT_EQ(next(*worker, {agent.get()}), "connected a");
}

TEST_F(ZmqTransportTest, DisconnectByTheListenerReachesTheOther) {
  auto agent = make({.self = "a"});
  auto worker = make({.self = "w"});
  ASSERT_TRUE(agent->listen(address));
  ASSERT_TRUE(worker->connect("a", address));
  ASSERT_EQ(next(*agent), "connected w");
  ASSERT_EQ(next(*worker), "connected a");
  agent->disconnect("w");
  EXPECT_EQ(agent->send("w", message("x")).error().kind, ErrorKind::disconnected);
  EXPECT_EQ(next(*worker), "disconnected a");
  ASSERT_TRUE(worker->connect("a", address));
  EXPECT_EQ(next(*agent), "connected w");
}

TEST_F(ZmqTransportTest, DisconnectByTheOtherReachesTheListener) {
  auto agent = make({.self = "a"});
  auto worker = make({.self = "w"});
  ASSERT_TRUE(agent->listen(address));
  ASSERT_TRUE(worker->connect("a", address));
  ASSERT_EQ(next(*agent), "connected w");
  ASSERT_EQ(next(*worker), "connected a");
  ASSERT_TRUE(worker->send("a", message("last")));
  worker->disconnect("a");
  EXPECT_EQ(next(*agent), "message w last");
  EXPECT_EQ(next(*agent), "disconnected w");
}

TEST_F(ZmqTransportTest, TakenNameIsRefusedAndItsHolderKeepsIt) {
  auto agent = make({.self = "a"});
  auto first = make({.self = "w"});
  auto second = make({.self = "w"});
  ASSERT_TRUE(agent->listen(address));
  ASSERT_TRUE(first->connect("a", address));
  ASSERT_EQ(next(*agent), "connected w");
  ASSERT_TRUE(second->connect("a", address));
  ASSERT_TRUE(second->send("a", message("stolen")));
  EXPECT_EQ(next(*second, {agent.get()}), "refused " + address);
  ASSERT_TRUE(agent->send("w", message("mine")));
  ASSERT_EQ(next(*first), "connected a");
  EXPECT_EQ(next(*first), "message a mine");
}

TEST_F(ZmqTransportTest, NameOfADeadPeerIsFreeAtOnceAndNothingOfItsHeirIsLost) {
  auto agent = make({.self = "a"});
  ASSERT_TRUE(agent->listen(address));
  for (int life = 0; life < 20; ++life) {
    auto worker = make({.self = "w"});
    ASSERT_TRUE(worker->connect("a", address));
    ASSERT_TRUE(worker->send("a", message(std::to_string(life))));
    if (life > 0) {
      ASSERT_EQ(next(*agent), "disconnected w");
    }  // The agent did not look since then.
    ASSERT_EQ(next(*agent), "connected w");
    ASSERT_EQ(next(*agent), "message w " + std::to_string(life));
    ASSERT_EQ(next(*worker), "connected a");
  }
}

TEST_F(ZmqTransportTest, AddressInUseIsAnErrorThatNamesIt) {
  auto first = make({.self = "a"});
  auto second = make({.self = "b"});
  ASSERT_TRUE(first->listen(address));
  const auto result = second->listen(address);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::invalid);
  EXPECT_NE(result.error().text.find(address + ": address in use"), std::string::npos);
}

TEST_F(ZmqTransportTest, SocketThatADeadProcessLeftIsTakenOver) {
  std::filesystem::path left = directory.path / "a";
  const pid_t child = ::fork();
  if (child == 0) {
    auto agent = make({.self = "a"});
    ::_exit(agent->listen(address) ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  ASSERT_TRUE(std::filesystem::exists(left));
  auto agent = make({.self = "a"});
  EXPECT_TRUE(agent->listen(address));
}

TEST_F(ZmqTransportTest, IpcInADirectoryOpenToOthersIsRefused) {
  ASSERT_EQ(::chmod(directory.path.c_str(), 0755), 0);
  auto agent = make({.self = "a"});
  EXPECT_EQ(agent->listen(address).error().kind, ErrorKind::invalid);
  EXPECT_EQ(agent->connect("b", address).error().kind, ErrorKind::invalid);
}

TEST_F(ZmqTransportTest, KilledProcessIsDisconnectedAndAStoppedOneIsNot) {
  const pid_t child = ::fork();
  if (child == 0) {
    auto worker = make({.self = "w"});
    if (!worker->connect("a", address)) ::_exit(1);
    while (true) {
      if (auto event = worker->poll(10s); event && event->kind == Kind::message) {
        (void)worker->send("a", std::move(event->frames));
      }
    }
  }
  auto agent = make({.self = "a"});
  ASSERT_TRUE(agent->listen(address));
  ASSERT_EQ(next(*agent), "connected w");
  ASSERT_TRUE(agent->send("w", message("echo")));
  ASSERT_EQ(next(*agent), "message w echo");
  ::kill(child, SIGSTOP);
  EXPECT_FALSE(agent->poll(50ms));
  EXPECT_TRUE(agent->send("w", message("kept")));
  ::kill(child, SIGKILL);
  EXPECT_EQ(next(*agent), "disconnected w");
  ::waitpid(child, nullptr, 0);
}

TEST_F(ZmqTransportTest, DescriptorIsReadableWheneverPollHasSomething) {
  auto agent = make({.self = "a"});
  auto worker = make({.self = "w"});
  ASSERT_TRUE(agent->listen(address));
  ASSERT_TRUE(worker->connect("a", address));
  const auto readable = [](Transport& t) {
    pollfd descriptor{t.descriptor(), POLLIN, 0};
    return ::poll(&descriptor, 1, 10'000) == 1;
  };
  // Answers are awaited through the descriptor only, a send between drain and wait included.
  int seen = 0;
  std::atomic<bool> done = false;
  std::thread echo([&] {
    while (!done) {
      if (auto event = agent->poll(10ms); event && event->kind == Kind::message) {
        ASSERT_TRUE(agent->send(event->peer, std::move(event->frames)));
      }
    }
  });
  for (int i = 0; i < 300; ++i) {
    ASSERT_TRUE(worker->send("a", message("x")));
    while (seen <= i) {
      ASSERT_TRUE(readable(*worker));
      while (auto event = worker->poll(0ms)) seen += event->kind == Kind::message;
    }
  }
  done = true;
  echo.join();
}

TEST_F(ZmqTransportTest, IdleTransportCostsNoProcessorTime) {
  auto agent = make({.self = "a"});
  auto worker = make({.self = "w"});
  ASSERT_TRUE(agent->listen(address));
  ASSERT_TRUE(worker->connect("a", address));
  ASSERT_EQ(next(*agent), "connected w");
  ASSERT_EQ(next(*worker), "connected a");
  ASSERT_FALSE(agent->poll(50ms));
  const auto cpu = [] {
    timespec time{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
  };
  const auto before = cpu();
  EXPECT_FALSE(agent->poll(300ms));
  EXPECT_LT(cpu() - before, 10ms);
}

TEST(ZmqOptions, NamesAndBoundsAreChecked) {
  for (const std::string& bad : {std::string(), std::string("a b"), std::string("a\n"), std::string(256, 'a')}) {
    EXPECT_EQ(ZmqTransport::create({.self = bad}).error().kind, ErrorKind::invalid);
  }
  EXPECT_EQ(ZmqTransport::create({.self = "a", .queue_bound = 0}).error().kind, ErrorKind::invalid);
  EXPECT_EQ(ZmqTransport::create({.self = "a", .io_threads = 0}).error().kind, ErrorKind::invalid);
}

class ZmqTcpTest : public testing::Test {
 protected:
  ClusterKeys keys = make_cluster_keys().value();
  const std::string any = "tcp://127.0.0.1:*";
};

TEST_F(ZmqTcpTest, TwoPeersWithTheClustersKeysTalk) {
  auto agent = make({.self = "a", .keys = keys});
  auto other = make({.self = "b", .keys = keys});
  const auto address = agent->listen(any);
  ASSERT_TRUE(address) << address.error().text;
  EXPECT_EQ(address->find('*'), std::string::npos);
  ASSERT_TRUE(other->connect("a", *address));
  ASSERT_TRUE(other->send("a", message("sealed")));
  EXPECT_EQ(next(*agent, {other.get()}), "connected b");
  EXPECT_EQ(next(*agent), "message b sealed");
}

TEST_F(ZmqTcpTest, TwoProcessesTalk) {
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    auto agent = make({.self = "a", .keys = keys});
    const std::string address = agent->listen(any).value();
    if (::write(pipe[1], address.c_str(), address.size() + 1) < 0) ::_exit(1);
    while (auto event = agent->poll(20s)) {
      if (event->kind == Kind::message) (void)agent->send(event->peer, std::move(event->frames));
      if (event->kind == Kind::disconnected) ::_exit(0);
    }
    ::_exit(2);
  }
  char address[256] = {};
  ASSERT_GT(::read(pipe[0], address, sizeof address - 1), 0);
  ::close(pipe[0]), ::close(pipe[1]);
  {
    auto other = make({.self = "b", .keys = keys});
    ASSERT_TRUE(other->connect("a", address));
    ASSERT_TRUE(other->send("a", message("there and back")));
    EXPECT_EQ(next(*other), "connected a");
    EXPECT_EQ(next(*other), "message a there and back");
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(ZmqTcpTest, WithoutKeysThereIsNoTcp) {
  auto agent = make({.self = "a"});
  for (const Error& error : {agent->listen(any).error(), agent->connect("b", "tcp://127.0.0.1:1").error()}) {
    EXPECT_EQ(error.kind, ErrorKind::invalid);
    EXPECT_NE(error.text.find("keys"), std::string::npos);
  }
}

TEST_F(ZmqTcpTest, PortInUseIsAnErrorThatNamesIt) {
  auto first = make({.self = "a", .keys = keys});
  auto second = make({.self = "b", .keys = keys});
  const auto address = first->listen(any).value();
  const auto result = second->listen(address);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::invalid);
  EXPECT_NE(result.error().text.find(address + ": address in use"), std::string::npos) << result.error().text;
}

TEST_F(ZmqTcpTest, AddressOfAnotherMachineOrNonsenseIsInvalid) {
  auto agent = make({.self = "a", .keys = keys});
  for (const char* bad : {"tcp://192.0.2.1:*", "tcp://127.0.0.1", "tcp://127.0.0.1:99999", "tcp://nosuchinterface:1"}) {
    const auto result = agent->listen(bad);
    ASSERT_FALSE(result) << bad;
    EXPECT_EQ(result.error().kind, ErrorKind::invalid) << result.error().text;
  }
}

TEST_F(ZmqTcpTest, ClientKeyOfAnotherClusterIsRefusedOnBothSides) {
  auto agent = make({.self = "a", .keys = keys});
  ClusterKeys stranger = keys;  // Knows the server's public key, which is no secret.
  stranger.client = make_curve_keys().value();
  auto other = make({.self = "b", .keys = stranger});
  const auto address = agent->listen(any).value();
  ASSERT_TRUE(other->connect("a", address));
  ASSERT_TRUE(other->send("a", message("let me in")));
  std::string at_agent, at_other;
  for (int i = 0; i < 5000 && (at_agent.empty() || at_other.empty()); ++i) {
    if (auto event = agent->poll(1ms); event && at_agent.empty()) at_agent = describe(*event);
    if (auto event = other->poll(1ms); event && at_other.empty()) at_other = describe(*event);
  }
  EXPECT_EQ(at_agent, "refused " + address);
  EXPECT_EQ(at_other, "refused " + address);
  EXPECT_EQ(other->send("a", message("x")).error().kind, ErrorKind::disconnected);
}

TEST_F(ZmqTcpTest, ServerOfAnotherClusterIsRefusedOnBothSides) {
  auto agent = make({.self = "a", .keys = keys});
  auto other = make({.self = "b", .keys = make_cluster_keys().value()});
  const auto address = agent->listen(any).value();
  ASSERT_TRUE(other->connect("a", address));
  std::string at_agent, at_other;
  for (int i = 0; i < 5000 && (at_agent.empty() || at_other.empty()); ++i) {
    if (auto event = agent->poll(1ms); event && at_agent.empty()) at_agent = describe(*event);
    if (auto event = other->poll(1ms); event && at_other.empty()) at_other = describe(*event);
  }
  EXPECT_EQ(at_agent, "refused " + address);
  EXPECT_EQ(at_other, "refused " + address);
}

TEST_F(ZmqTcpTest, PlainZeroMqWithoutKeysGetsNothingThrough) {
  auto agent = make({.self = "a", .keys = keys});
  const auto address = agent->listen(any).value();
  void* context = zmq_ctx_new();
  void* dealer = zmq_socket(context, ZMQ_DEALER);
  const int linger = 0;
  zmq_setsockopt(dealer, ZMQ_LINGER, &linger, sizeof linger);
  ASSERT_EQ(zmq_connect(dealer, address.c_str()), 0);
  zmq_send(dealer, "", 0, ZMQ_SNDMORE);
  zmq_send(dealer, "\1paceline/1 evil", 16, 0);
  EXPECT_EQ(next(*agent), "refused " + address);
  zmq_close(dealer);
  zmq_ctx_term(context);
}

TEST_F(ZmqTransportTest, StrangersMessagesWithoutAGreetingAreDropped) {
  auto agent = make({.self = "a"});
  ASSERT_TRUE(agent->listen(address));
  void* context = zmq_ctx_new();
  void* dealer = zmq_socket(context, ZMQ_DEALER);
  const int linger = 0;
  zmq_setsockopt(dealer, ZMQ_LINGER, &linger, sizeof linger);
  ASSERT_EQ(zmq_connect(dealer, address.c_str()), 0);
  zmq_send(dealer, "data", 4, 0);
  for (int i = 0; i < 1000; ++i) zmq_send(dealer, "x", 1, i < 999 ? ZMQ_SNDMORE : 0);
  zmq_send(dealer, "", 0, ZMQ_SNDMORE);
  zmq_send(dealer, "\1paceline/1 bad name", 20, 0);
  zmq_send(dealer, "", 0, ZMQ_SNDMORE);
  zmq_send(dealer, "\1paceline/1 good", 16, 0);
  EXPECT_EQ(next(*agent), "connected good");
  zmq_close(dealer);
  zmq_ctx_term(context);
  EXPECT_EQ(next(*agent), "disconnected good");
}

}  // namespace
}  // namespace paceline::transport
