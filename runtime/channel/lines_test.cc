#include "runtime/channel/lines.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "runtime/base/test_directory.h"
#include "runtime/process/fd_passing.h"

namespace paceline::channel {
namespace {

using testing::ElementsAre;

Message message(const std::string& text) {
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  return {Frame(begin, begin + text.size())};
}

std::string text_of(const Message& message) {
  return {reinterpret_cast<const char*>(message[0].data()), message[0].size()};
}

/// One process's lines, and what they told.
struct Side {
  explicit Side(const std::string& name)
      : lines(*Lines::create(name, {.called = [this](const std::string& peer,
                                                     Message m) { told.push_back(peer + " calls " + text_of(m)); },
                                    .answered = [this](const std::string& peer,
                                                       Message m) { told.push_back(peer + " answers " + text_of(m)); },
                                    .ended =
                                        [this](const std::string& peer, std::size_t untaken) {
                                          told.push_back(peer + " ended, " + std::to_string(untaken) + " left");
                                        }})) {}

  void serve(std::size_t until = 1) {
    for (int i = 0; i < 200 && told.size() < until; ++i) {
      pollfd wait{lines->descriptor(), POLLIN, 0};
      if (::poll(&wait, 1, 5) == 1) lines->serve();
    }
  }

  std::vector<std::string> told;
  std::unique_ptr<Lines> lines;
};

class LinesTest : public testing::Test {
 protected:
  LinesTest() {
    EXPECT_TRUE(callee.lines->listen(path()));
    EXPECT_TRUE(caller.lines->connect("callee", path()));
  }
  std::string path() const { return (directory.path / "callee").string(); }

  test::TestDirectory directory;
  Side caller{"caller"}, callee{"callee"};
};

TEST_F(LinesTest, ACallGoesOutAndItsAnswerComesBack) {
  EXPECT_TRUE(caller.lines->send_out("callee", message("one"))) << "also before it was accepted";
  EXPECT_TRUE(caller.lines->send_out("callee", message("two")));
  callee.serve(2);
  EXPECT_THAT(callee.told, ElementsAre("caller calls one", "caller calls two"));
  EXPECT_TRUE(callee.lines->send_in("caller", message("1")));
  caller.serve();
  EXPECT_THAT(caller.told, ElementsAre("callee answers 1"));
  EXPECT_FALSE(callee.lines->send_in("stranger", message("1")));
  EXPECT_FALSE(callee.lines->send_out("caller", message("1"))) << "it only came in";
}

TEST_F(LinesTest, TwoThatCallEachOtherHaveALineEach) {
  const auto back = (directory.path / "caller").string();
  EXPECT_TRUE(caller.lines->listen(back));
  EXPECT_TRUE(callee.lines->connect("caller", back));
  EXPECT_TRUE(callee.lines->send_out("caller", message("back")));
  EXPECT_TRUE(caller.lines->send_out("callee", message("forth")));
  caller.serve();
  callee.serve();
  EXPECT_THAT(caller.told, ElementsAre("callee calls back"));
  EXPECT_THAT(callee.told, ElementsAre("caller calls forth"));
}

TEST_F(LinesTest, NothingBlocksAndWhatLeftArrives) {
  EXPECT_FALSE(caller.lines->send_out("callee", message(std::string(Lines::kMessageMax + 1, 'x'))));
  std::size_t sent = 0;
  while (caller.lines->send_out("callee", message(std::string(100, 'x')))) ++sent;
  EXPECT_GT(sent * 100, Lines::kRingBytes / 2);
  callee.serve(sent);
  EXPECT_EQ(callee.told.size(), sent);
  EXPECT_TRUE(caller.lines->send_out("callee", message("there is room again")));
}

TEST_F(LinesTest, WhoEndsIsHeardOutFirst) {
  EXPECT_TRUE(caller.lines->send_out("callee", message("one")));
  callee.serve();
  EXPECT_TRUE(callee.lines->send_in("caller", message("last word")));
  callee.lines.reset();
  caller.serve(2);
  EXPECT_THAT(caller.told, ElementsAre("callee answers last word", "callee ended, 0 left"));
  EXPECT_FALSE(caller.lines->send_out("callee", message("two")));
}

TEST_F(LinesTest, WhatTheOtherEndHasNotTakenIsCounted) {
  for (const char* text : {"one", "two", "three"}) EXPECT_TRUE(caller.lines->send_out("callee", message(text)));
  callee.serve(3);
  EXPECT_EQ(callee.told.size(), 3U);
  for (const char* text : {"four", "five"}) EXPECT_TRUE(caller.lines->send_out("callee", message(text)));
  callee.lines.reset();
  caller.serve();
  EXPECT_THAT(caller.told, ElementsAre("callee ended, 2 left"));
}

TEST_F(LinesTest, WhatWasSentToSomebodyWhoNeverTookTheLineIsCounted) {
  EXPECT_TRUE(caller.lines->send_out("callee", message("one")));
  callee.lines.reset();
  caller.serve();
  EXPECT_THAT(caller.told, ElementsAre("callee ended, 1 left"));
}

TEST_F(LinesTest, AProcessThatIsKilledEndsItsLines) {
  const pid_t child = fork();
  if (child == 0) {
    auto lines = Lines::create("child", {});
    if (!(*lines)->connect("callee", path()) || !(*lines)->send_out("callee", message("hello"))) _exit(1);
    ::kill(getpid(), SIGKILL);
  }
  callee.serve();
  EXPECT_THAT(callee.told, ElementsAre("child calls hello"));
  ::waitpid(child, nullptr, 0);
  callee.serve(2);
  EXPECT_FALSE(callee.lines->send_in("child", message("too late")));
}

TEST_F(LinesTest, ManyThreadsSendWhileOneReceives) {
  constexpr int kThreads = 4, kEach = 5000;
  constexpr std::size_t kAll = kThreads * kEach;
  std::atomic<bool> over{false};
  std::thread receiving([&] {
    for (int idle = 0; callee.told.size() < kAll && idle < 5000;) {  // As a loop does: woken, or not at all.
      pollfd wait{callee.lines->descriptor(), POLLIN, 0};
      if (::poll(&wait, 1, 1) == 1)
        callee.lines->serve();
      else
        ++idle;
    }
    over = true;
  });
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < kEach; ++i)
        while (!over && !caller.lines->send_out("callee", message(std::to_string(t) + ":" + std::to_string(i))))
          std::this_thread::yield();
    });
  for (auto& thread : threads) thread.join();
  receiving.join();
  ASSERT_EQ(callee.told.size(), kAll);
  std::vector<int> next(kThreads, 0);
  for (const auto& told : callee.told) {
    const auto at = std::strlen("caller calls ");
    const auto t = static_cast<std::size_t>(told[at] - '0');
    EXPECT_EQ(told.substr(at + 2), std::to_string(next[t]++)) << "in the order of its thread";
  }
}

TEST_F(LinesTest, StrangeFirstWordsAreHungUpOn) {
  const auto strange = [&](const std::string& word, const std::vector<process::BorrowedFd>& fds) {
    const int socket = ::socket(AF_UNIX, SOCK_SEQPACKET, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path().c_str(), sizeof address.sun_path - 1);
    EXPECT_EQ(::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_TRUE(process::send_with_fds(process::BorrowedFd(socket), word, fds));
    callee.serve(0);
    for (int i = 0; i < 5; ++i) callee.lines->serve();
    pollfd wait{socket, POLLIN, 0};
    EXPECT_EQ(::poll(&wait, 1, 1000), 1) << word;
    char byte = 0;
    EXPECT_LE(::recv(socket, &byte, 1, 0), 0) << word;
    ::close(socket);
  };
  const process::Fd null(::open("/dev/null", O_RDWR));
  strange("no descriptors", {});
  strange("none of a channel", {null, null, null});
  strange(std::string(1000, 'x'), {null});
  EXPECT_TRUE(caller.lines->send_out("callee", message("goes on")));
  callee.serve();
  EXPECT_THAT(callee.told, ElementsAre("caller calls goes on"));
}

class WatchTest : public LinesTest {
 protected:
  WatchTest() {
    EXPECT_TRUE(caller.lines->send_out("callee", message("first")));
    callee.serve();
    callee.told.clear();
  }
  /// By the callee's lines.
  bool is_woken() const {
    pollfd wait{callee.lines->descriptor(), POLLIN, 0};
    return ::poll(&wait, 1, 20) == 1;
  }
  void call(const std::string& text) { EXPECT_TRUE(caller.lines->send_out("callee", message(text))); }
};

TEST_F(WatchTest, WhoLooksIsToldAndNobodyIsWokenUntilItGoes) {
  {
    auto watch = callee.lines->watch(8);
    watch.look();
    call("one");
    EXPECT_FALSE(is_woken());
    watch.look();
    EXPECT_THAT(callee.told, ElementsAre("caller calls one"));
    call("two");
  }
  EXPECT_EQ(callee.told.size(), 2U) << "what is there when it goes is told";
  call("three");
  EXPECT_TRUE(is_woken());
}

TEST_F(WatchTest, AfterOneThatHasLeftNobodyIsWokenUntilTheLinesRest) {
  {
    auto watch = callee.lines->watch(8);
    watch.look();
    watch.leave();
  }
  call("one");
  EXPECT_FALSE(is_woken());
  EXPECT_TRUE(callee.told.empty());
  callee.lines->rest();
  EXPECT_THAT(callee.told, ElementsAre("caller calls one"));
  call("two");
  EXPECT_TRUE(is_woken());
}

TEST_F(WatchTest, IsOfLinesThatGoOutToo) {
  auto watch = caller.lines->watch(8);
  watch.look();
  EXPECT_TRUE(callee.lines->send_in("caller", message("one")));
  watch.look();
  EXPECT_THAT(caller.told, ElementsAre("callee answers one"));
}

TEST_F(WatchTest, MoreLinesThanAreToBeWatchedAreNot) {
  EXPECT_FALSE(callee.lines->watch(1).empty());
  EXPECT_TRUE(callee.lines->watch(0).empty());
}

TEST_F(LinesTest, NobodyListensWhereNobodyListens) {
  EXPECT_FALSE(caller.lines->connect("nobody", (directory.path / "nobody").string()));
  EXPECT_FALSE(caller.lines->connect("nobody", (directory.path / std::string(200, 'x')).string()));
}

}  // namespace
}  // namespace paceline::channel
