// Links over real connections, and to real processes that freeze and die.
#include <arpa/inet.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <span>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "runtime/base/byte_pool.h"
#include "runtime/base/steady_now.h"
#include "runtime/base/test_directory.h"
#include "runtime/link/link_transport.h"
#include "runtime/transport/zmq/zmq_transport.h"

namespace paceline::link {
namespace {

using namespace std::chrono_literals;
using transport::Event;
using transport::Transport;

std::unique_ptr<LinkTransport> open(const std::string& name, const transport::ClusterKeys& keys) {
  transport::ZmqOptions options;
  options.self = name;
  options.keys = keys;
  options.links = true;
  options.frame_bytes_max = 1 << 20;
  return std::make_unique<LinkTransport>(
      transport::ZmqTransport::create(std::move(options)).value(),
      LinkTransport::Options{.has_pulse = true, .class_of = {}, .clock = &machine_clock()});
}

/// The next event, while `other` goes about its business.
Event next(Transport& transport, Transport* other = nullptr, Duration patience = 10s) {
  const Instant until = steady_now() + patience;
  while (steady_now() < until) {
    if (auto event = transport.poll(1ms)) return *std::move(event);
    if (other) (void)other->poll(0ms);
  }
  ADD_FAILURE() << "nothing happens";
  return {};
}

constexpr std::size_t kBusy = 17;  // A message of so many bytes keeps its receiver from its loop for 3 s.

constexpr const char* kLoopback = "tcp://127.0.0.1:*";

/// Another process, which answers every message with itself. It listens at `own`, and connects to `address` if there is
/// one.
class Process {
 public:
  Process(const transport::ClusterKeys& keys, const std::filesystem::path& told, const std::string& address = {},
          const std::string& own = kLoopback) {
    pid_ = ::fork();
    if (pid_ == 0) {
      auto transport = open("child", keys);
      std::ofstream(told.string() + "~") << *transport->listen(own);
      std::filesystem::rename(told.string() + "~", told);
      if (!address.empty()) (void)transport->connect("parent", address);
      while (true)
        if (auto event = transport->poll(1h); event && event->kind == Event::Kind::message) {
          if (event->frames[0].size() == kBusy) std::this_thread::sleep_for(3s);
          (void)transport->send(event->peer, std::move(event->frames));
        }
    }
    const Instant until = steady_now() + 10s;
    while (address_.empty() && steady_now() < until) std::ifstream(told) >> address_;
  }
  ~Process() {
    say(SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  void say(int signal) const { ::kill(pid_, signal); }
  const std::string& address() const { return address_; }

 private:
  pid_t pid_ = -1;
  std::string address_;
};

class LinkZmqTest : public testing::Test {
 protected:
  transport::ClusterKeys keys = transport::make_cluster_keys().value();
  test::TestDirectory directory;
};

TEST_F(LinkZmqTest, AFrozenProcessIsNoticedWithinItsLease) {
  const Process child(keys, directory.path / "address");
  auto parent = open("parent", keys);
  ASSERT_TRUE(parent->connect("child", child.address()));
  ASSERT_EQ(next(*parent).kind, Event::Kind::connected);
  parent->depends_on("child", true);
  EXPECT_FALSE(parent->poll(300ms));
  child.say(SIGSTOP);
  const Instant begin = steady_now();
  const Event event = next(*parent);
  EXPECT_EQ(event.kind, Event::Kind::disconnected);
  EXPECT_EQ(event.cause, "child has not answered for 2.0 s");
  EXPECT_GE(steady_now() - begin, 1700ms);
  EXPECT_LE(steady_now() - begin, 2500ms);
  child.say(SIGCONT);
}

/// The child listens at `own`.
void check_busy(const transport::ClusterKeys& keys, const std::filesystem::path& told, const std::string& own) {
  const Process child(keys, told, {}, own);
  auto parent = open("parent", keys);
  ASSERT_TRUE(parent->listen(kLoopback));
  ASSERT_TRUE(parent->connect("child", child.address()));
  ASSERT_EQ(next(*parent).kind, Event::Kind::connected);
  parent->depends_on("child", true);
  ASSERT_TRUE(parent->send("child", {Frame(kBusy)}));
  const Event event = next(*parent);
  EXPECT_EQ(event.kind, Event::Kind::message) << event.cause;
}

TEST_F(LinkZmqTest, ABusyProcessIsNotTakenForAFrozenOne) { check_busy(keys, directory.path / "address", kLoopback); }

TEST_F(LinkZmqTest, NeitherIsOneThatListensAtAUnixSocket) {
  check_busy(keys, directory.path / "address", "ipc://" + (directory.path / "child.sock").string());
}

TEST_F(LinkZmqTest, ADeadProcessIsNoticedAtOnceByWhoConnectedToIt) {
  const Process child(keys, directory.path / "address");
  auto parent = open("parent", keys);
  ASSERT_TRUE(parent->connect("child", child.address()));
  ASSERT_EQ(next(*parent).kind, Event::Kind::connected);
  child.say(SIGKILL);
  const Instant begin = steady_now();
  EXPECT_EQ(next(*parent).cause, "child is gone: nobody listens at its address any more");
  EXPECT_LE(steady_now() - begin, 1s);
}

TEST_F(LinkZmqTest, ADeadProcessIsNoticedAtOnceByWhomItConnectedTo) {
  const std::string address = "tcp://127.0.0.1:" + std::to_string(20'000 + ::getpid() % 10'000);
  const Process child(keys, directory.path / "address", address);  // Forked before there are threads.
  auto parent = open("parent", keys);
  ASSERT_TRUE(parent->listen(address));
  ASSERT_EQ(next(*parent).kind, Event::Kind::connected);
  child.say(SIGKILL);
  const Instant begin = steady_now();
  EXPECT_EQ(next(*parent).cause, "child is gone: nobody listens at its address any more");
  EXPECT_LE(steady_now() - begin, 1s);
}

/// Ends the connections of this process to `port`, as a network does.
int cut(int port) {
  int count = 0;
  for (int fd = 3; fd < 1024; ++fd) {
    sockaddr_in other{};
    socklen_t size = sizeof other;
    if (::getpeername(fd, reinterpret_cast<sockaddr*>(&other), &size) != 0 || other.sin_family != AF_INET) continue;
    if (ntohs(other.sin_port) == port && ::shutdown(fd, SHUT_RDWR) == 0) ++count;
  }
  return count;
}

// TSan looks up a suppression for every word that ZeroMQ's threads wrote.
#if defined(__SANITIZE_THREAD__)
constexpr std::size_t kLarge = std::size_t{16} << 10;
#else
constexpr std::size_t kLarge = std::size_t{8} << 20;
#endif

TEST_F(LinkZmqTest, ACutConnectionIsResumedAndLosesNothing) {
  auto left = open("left", keys);
  auto right = open("right", keys);
  const std::string address = *left->listen("tcp://127.0.0.1:*");
  const int port = std::stoi(address.substr(address.rfind(':') + 1));
  ASSERT_TRUE(right->connect("left", address));
  ASSERT_EQ(next(*right, left.get()).kind, Event::Kind::connected);
  ASSERT_EQ(next(*left, right.get()).kind, Event::Kind::connected);
  constexpr int kMessages = 12;
  for (int i = 0; i < kMessages; ++i)
    ASSERT_TRUE(right->send("left", {Frame(4, static_cast<std::byte>(i)), Frame(kLarge, static_cast<std::byte>(i))}));
  int cuts = 0;
  for (int i = 0; i < kMessages; ++i) {
    Event event = next(*left, right.get());
    while (event.kind == Event::Kind::refused) event = next(*left, right.get());  // It was cut while it shook hands.
    ASSERT_EQ(event.kind, Event::Kind::message) << event.cause;
    ASSERT_EQ(event.frames.size(), 2u);
    EXPECT_EQ(event.frames[0], Frame(4, static_cast<std::byte>(i)));
    EXPECT_EQ(event.frames[1], Frame(kLarge, static_cast<std::byte>(i)));
    if (i % 3 == 1) cuts += cut(port);
  }
  EXPECT_GE(cuts, 3);
}

TEST_F(LinkZmqTest, SharedBytesAreSentFromOneBufferOverAndOver) {
  auto left = open("left", keys);
  auto right = open("right", keys);
  ASSERT_TRUE(right->connect("left", *left->listen("tcp://127.0.0.1:*")));
  ASSERT_EQ(next(*right, left.get()).kind, Event::Kind::connected);
  ASSERT_EQ(next(*left, right.get()).kind, Event::Kind::connected);
  BytePool pool(2);
  std::set<const std::byte*> buffers;
  for (int i = 0; i < 10; ++i) {
    auto bytes = pool.get(kLarge);
    std::fill(bytes->begin(), bytes->end(), static_cast<std::byte>(i));
    buffers.insert(bytes->data());
    ASSERT_TRUE(right->send_pieces("left", Frame(4), {{bytes, *bytes}, {bytes, std::span(*bytes).first(2000)}}));
    bytes.reset();
    const Event event = next(*left, right.get());
    ASSERT_EQ(event.frames.size(), 3u);
    EXPECT_EQ(event.frames[1], Frame(kLarge, static_cast<std::byte>(i)));
    EXPECT_EQ(event.frames[2], Frame(2000, static_cast<std::byte>(i)));
    for (const Instant until = steady_now() + 10s; pool.spares() == 0 && steady_now() < until;) {
      (void)left->poll(1ms);
      (void)right->poll(1ms);
    }
  }
  EXPECT_EQ(buffers.size(), 1u);
}

TEST_F(LinkZmqTest, AnEndThatIsDestroyedIsNoticed) {
  auto left = open("left", keys);
  auto right = open("right", keys);
  ASSERT_TRUE(right->connect("left", *left->listen("tcp://127.0.0.1:*")));
  ASSERT_EQ(next(*right, left.get()).kind, Event::Kind::connected);
  ASSERT_EQ(next(*left, right.get()).kind, Event::Kind::connected);
  right.reset();
  EXPECT_EQ(next(*left).cause, "right has ended the link");
}

}  // namespace
}  // namespace paceline::link
