#include "runtime/process/descriptor_channel.h"

#include <dirent.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <cstring>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "runtime/process/few_descriptors_test_support.h"

namespace paceline::process {
namespace {

using namespace std::chrono_literals;
using Kind = DescriptorMessage::Kind;

constexpr Duration kPatience = 20s;  // Only a failing test gets there.

std::size_t open_descriptors() {
  DIR* const folder = ::opendir("/proc/self/fd");
  std::size_t count = 0;
  while (::readdir(folder) != nullptr) ++count;
  ::closedir(folder);
  return count;
}

Fd memory() { return Fd(::memfd_create("x", MFD_CLOEXEC)); }

std::string header(std::uint32_t version, std::uint16_t kind, std::uint16_t fds, std::uint64_t request) {
  std::string bytes(kDescriptorHeaderBytes, '\0');
  std::memcpy(bytes.data(), &version, sizeof version);
  std::memcpy(bytes.data() + 4, &kind, sizeof kind);
  std::memcpy(bytes.data() + 6, &fds, sizeof fds);
  std::memcpy(bytes.data() + 8, &request, sizeof request);
  return bytes;
}

std::string kind_of_error(const Result<DescriptorChannel::Answer>& answer) {
  return answer ? "none" : std::string(to_string(answer.error().kind));
}

class DescriptorChannelTest : public testing::Test {
 protected:
  void SetUp() override {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    agent.reset(ends[0]);
    sut.emplace(Fd(ends[1]));
  }
  DescriptorMessage hear() {
    auto message = receive_with_fds(agent, 20'000).and_then(decode_descriptor_message);
    EXPECT_TRUE(message) << message.error().text;
    return message ? *std::move(message) : DescriptorMessage{};
  }
  void answer(std::uint64_t request, const std::string& body, const std::vector<BorrowedFd>& fds = {},
              Kind kind = Kind::answer) {
    ASSERT_TRUE(send_with_fds(agent, encode(kind, request, body, fds.size()), fds));
  }
  std::string ask(Duration patience = kPatience) {
    const auto answer = sut->ask(Kind::find_state, {}, patience);
    return answer ? answer->body + "+" + std::to_string(answer->fds.size()) : answer.error().text;
  }

  Fd agent;
  std::optional<DescriptorChannel> sut;
};

TEST_F(DescriptorChannelTest, WhatIsSaidArrivesWithItsDescriptor) {
  const Fd given = memory();
  ASSERT_TRUE(sut->tell(Kind::spans, "of what", {given}));
  const auto heard = hear();
  EXPECT_EQ(heard.kind, Kind::spans);
  EXPECT_EQ(heard.request, 0u);
  EXPECT_EQ(heard.body, "of what");
  EXPECT_EQ(heard.fds.size(), 1u);
}

TEST_F(DescriptorChannelTest, ThreadsThatAskAtOnceGetEachItsAnswerInWhateverOrder) {
  constexpr std::size_t kThreads = 8, kRounds = 100;
  const Fd given = memory();
  const std::size_t before = open_descriptors();
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < kThreads; ++t)
    threads.emplace_back([this] {
      for (std::size_t i = 0; i < kRounds; ++i) {
        const auto request = sut->begin();
        ASSERT_TRUE(sut->tell(Kind::find_state, std::to_string(request.number()), {}));
        const auto answer = sut->wait(request, kPatience);
        ASSERT_TRUE(answer) << answer.error().text;
        EXPECT_EQ(answer->body, "to " + std::to_string(request.number()));
        EXPECT_EQ(answer->fds.size(), 1u);
      }
    });
  std::vector<std::string> asked;
  for (std::size_t heard = 0; heard < kThreads * kRounds; ++heard) {
    asked.push_back(hear().body);
    const bool last = heard + 1 == kThreads * kRounds || asked.size() == kThreads;
    pollfd more{agent.get(), POLLIN, 0};
    if (!last && ::poll(&more, 1, 1) > 0) continue;
    for (; !asked.empty(); asked.pop_back()) answer(std::stoull(asked.back()), "to " + asked.back(), {given});
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(open_descriptors(), before);
}

TEST_F(DescriptorChannelTest, WhereNoDescriptorIsLeftOnlyThatRequestFails) {
  const Fd given = memory();
  const auto first = sut->begin(), second = sut->begin();
  answer(first.number(), "first", {given});
  answer(second.number(), "second", {given});
  {
    const FewDescriptors none_left(0);
    EXPECT_EQ(kind_of_error(sut->wait(first, kPatience)), "overloaded");
  }
  const auto came = sut->wait(second, kPatience);
  ASSERT_TRUE(came) << came.error().text;
  EXPECT_EQ(came->fds.size(), 1u);
}

TEST_F(DescriptorChannelTest, AnAnswerThatNobodyWaitsForAnyMoreIsDroppedWithItsDescriptors) {
  const Fd given = memory();
  const std::size_t before = open_descriptors();
  EXPECT_EQ(ask(1ms), "the agent has not answered in time over a worker's Unix socket");
  answer(hear().request, "late", {given, given});
  answer(12345, "to nobody", {given});
  answer(0, "to nobody", {given});
  {
    const auto request = sut->begin();
    answer(request.number(), "in time", {given});
    EXPECT_EQ(sut->wait(request, kPatience)->body, "in time");
    answer(request.number(), "a second time", {given});
  }
  {
    const auto unread = sut->begin();
    const auto request = sut->begin();
    answer(unread.number(), "kept as long as it is wanted", {given});
    answer(request.number(), "now");
    EXPECT_EQ(sut->wait(request, kPatience)->body, "now");
    EXPECT_GT(open_descriptors(), before);
  }
  EXPECT_EQ(open_descriptors(), before);
}

TEST_F(DescriptorChannelTest, ARequestThatTimedOutMayBeWaitedForAgain) {
  const auto request = sut->begin();
  EXPECT_EQ(kind_of_error(sut->wait(request, 0ns)), "timed_out");
  answer(request.number(), "now");
  EXPECT_EQ(sut->wait(request, 0ns)->body, "now");
}

TEST_F(DescriptorChannelTest, AFailureIsAnAnswer) {
  std::thread other([this] { answer(hear().request, "there is none", {}, Kind::failure); });
  const auto asked = sut->ask(Kind::find_state, {}, kPatience);
  other.join();
  ASSERT_FALSE(asked);
  EXPECT_EQ(asked.error().kind, ErrorKind::invalid);
  EXPECT_EQ(asked.error().text, "there is none");
}

TEST_F(DescriptorChannelTest, AllThatWaitHearOfAnAgentThatDies) {
  EXPECT_TRUE(sut->agent_is_there());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) threads.emplace_back([this] { EXPECT_EQ(ask(), "the peer of a Unix socket hung up"); });
  for (int t = 0; t < 4; ++t) (void)hear();
  agent.reset();
  for (auto& thread : threads) thread.join();
  EXPECT_FALSE(sut->agent_is_there());
  const Fd given = memory();
  EXPECT_EQ(sut->tell(Kind::spans, {}, {given}).error().kind, ErrorKind::disconnected);
}

TEST_F(DescriptorChannelTest, WhatTheAgentSaidBeforeItDiedIsHeard) {
  const auto request = sut->begin();
  answer(request.number(), "last words");
  agent.reset();
  EXPECT_EQ(sut->wait(request, kPatience)->body, "last words");
  EXPECT_EQ(kind_of_error(sut->wait(sut->begin(), kPatience)), "disconnected");
}

TEST_F(DescriptorChannelTest, NonsenseEndsTheWaitOfAll) {
  const auto request = sut->begin();
  ASSERT_TRUE(send_with_fds(agent, "nonsense", {}));
  EXPECT_EQ(kind_of_error(sut->wait(request, kPatience)), "internal");
  EXPECT_EQ(kind_of_error(sut->wait(sut->begin(), kPatience)), "internal");
}

TEST_F(DescriptorChannelTest, PacketsThatAreNoMessagesAreRefusedAndTheirDescriptorsClosed) {
  const Fd one = memory();
  const auto answer_kind = static_cast<std::uint16_t>(Kind::answer), spans = static_cast<std::uint16_t>(Kind::spans),
             open = static_cast<std::uint16_t>(Kind::open_channel);
  struct Case {
    const char* what;
    std::string bytes;
    std::size_t fds = 0;
  };
  const Case cases[] = {
      {"too short", header(1, answer_kind, 0, 1).substr(0, kDescriptorHeaderBytes - 1)},
      {"too short, with a descriptor", "x", 1},
      {"another version", header(2, answer_kind, 1, 1), 1},
      {"kind 0", header(1, 0, 1, 1), 1},
      {"unknown kind", header(1, 99, 1, 1), 1},
      {"one less than it says", header(1, answer_kind, 2, 1), 1},
      {"one more than it says", header(1, answer_kind, 0, 1), 1},
      {"spans without memory", header(1, spans, 0, 1)},
      {"spans with two", header(1, spans, 2, 1), 2},
      {"a question with a descriptor", header(1, open, 1, 1), 1},
      {"an answer with three", header(1, answer_kind, 3, 1), 3},
      {"too many", header(1, answer_kind, 60, 1), 60},
  };
  const std::size_t before = open_descriptors();
  for (const auto& each : cases) {
    ASSERT_TRUE(send_with_fds(agent, each.bytes, std::vector<BorrowedFd>(each.fds, one)));
    const auto message = receive_with_fds(sut->socket(), 1000).and_then(decode_descriptor_message);
    ASSERT_FALSE(message) << each.what;
    EXPECT_EQ(message.error().kind, ErrorKind::invalid) << each.what;
  }
  // Longer than any packet, with a descriptor.
  std::string large = header(1, answer_kind, 1, 1) + std::string(kPacketBytesMax, 'x');
  iovec data{large.data(), large.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr sent{};
  sent.msg_iov = &data;
  sent.msg_iovlen = 1;
  sent.msg_control = control;
  sent.msg_controllen = sizeof control;
  cmsghdr* const rights = CMSG_FIRSTHDR(&sent);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof(int));
  const int number = one.get();
  std::memcpy(CMSG_DATA(rights), &number, sizeof number);
  ASSERT_EQ(::sendmsg(agent.get(), &sent, 0), static_cast<ssize_t>(large.size()));
  EXPECT_EQ(kind_of_error(sut->wait(sut->begin(), kPatience)), "internal");
  EXPECT_EQ(open_descriptors(), before);
}

TEST_F(DescriptorChannelTest, AnAnswerIsAsLongAsAPacketHasRoomFor) {
  const auto request = sut->begin();
  answer(request.number(), std::string(kPacketBytesMax - kDescriptorHeaderBytes, 'x'));
  EXPECT_EQ(sut->wait(request, kPatience)->body.size(), kPacketBytesMax - kDescriptorHeaderBytes);
}

}  // namespace
}  // namespace paceline::process
