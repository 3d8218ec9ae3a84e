#include "runtime/process/fd_passing.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/process/fd.h"
#include "runtime/process/few_descriptors_test_support.h"

namespace paceline::process {
namespace {

class FdPassingTest : public testing::Test {
 protected:
  void SetUp() override {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    a.reset(ends[0]);
    b.reset(ends[1]);
  }
  Fd a, b;
};

TEST_F(FdPassingTest, DescriptorsArriveInOrderCloseOnExecAndNameTheSameFiles) {
  std::vector<Fd> files;
  for (char i = 0; i < 3; ++i) {
    files.emplace_back(::memfd_create("x", MFD_CLOEXEC));
    ASSERT_EQ(::pwrite(files.back().get(), &i, 1, 0), 1);
  }
  ASSERT_TRUE(send_with_fds(a, "three", {files.begin(), files.end()}));
  auto packet = receive_with_fds(b, 1000);
  ASSERT_TRUE(packet);
  EXPECT_EQ(packet->bytes, "three");
  ASSERT_EQ(packet->fds.size(), 3u);
  for (char i = 0; i < 3; ++i) {
    const Fd& received = packet->fds[static_cast<std::size_t>(i)];
    char content = 9;
    EXPECT_EQ(::pread(received.get(), &content, 1, 0), 1);
    EXPECT_EQ(content, i);
    EXPECT_EQ(::fcntl(received.get(), F_GETFD), FD_CLOEXEC);
  }
}

TEST_F(FdPassingTest, LargestPacketArrivesWholeAndALargerOneIsRefused) {
  const std::string largest(kPacketBytesMax, 'x');
  ASSERT_TRUE(send_with_fds(a, largest, std::vector<BorrowedFd>(kPacketFdsMax, a)));
  const auto packet = receive_with_fds(b, 1000);
  ASSERT_TRUE(packet);
  EXPECT_EQ(packet->bytes, largest);
  EXPECT_EQ(packet->fds.size(), kPacketFdsMax);

  EXPECT_EQ(send_with_fds(a, largest + "x", {}).error().kind, ErrorKind::invalid);
  EXPECT_EQ(send_with_fds(a, "x", std::vector<BorrowedFd>(kPacketFdsMax + 1, a)).error().kind, ErrorKind::invalid);
  EXPECT_EQ(send_with_fds(a, "", {}).error().kind, ErrorKind::invalid);
}

TEST_F(FdPassingTest, PacketBeyondTheBoundsFromAPeerIsRefusedAndTheNextArrives) {
  const std::string large(kPacketBytesMax + 1, 'x');
  ASSERT_EQ(::send(a.get(), large.data(), large.size(), 0), static_cast<ssize_t>(large.size()));
  ASSERT_TRUE(send_with_fds(a, "next", {}));
  EXPECT_EQ(receive_with_fds(b, 1000).error().kind, ErrorKind::invalid);
  EXPECT_EQ(receive_with_fds(b, 1000)->bytes, "next");
}

TEST_F(FdPassingTest, WhereNoDescriptorIsLeftThePacketComesWithout) {
  const std::vector<BorrowedFd> two(2, a);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(send_with_fds(a, "two", two));
  ASSERT_TRUE(send_with_fds(a, "none", {}));
  {
    const FewDescriptors one_left(1);
    const auto packet = receive_perhaps_without_fds(b, 1000);
    ASSERT_TRUE(packet) << packet.error().text;
    EXPECT_EQ(packet->bytes, "two");
    EXPECT_TRUE(packet->fds_lost);
    EXPECT_TRUE(packet->fds.empty()) << "not even the one that there was room for";
    EXPECT_EQ(receive_with_fds(b, 1000).error().kind, ErrorKind::invalid);
  }
  EXPECT_EQ(receive_with_fds(b, 1000)->bytes, "none");
}

TEST_F(FdPassingTest, NothingSentTimesOut) {
  EXPECT_EQ(receive_with_fds(b, 0).error().kind, ErrorKind::timed_out);
  EXPECT_EQ(receive_with_fds(b, 1).error().kind, ErrorKind::timed_out);
}

TEST_F(FdPassingTest, HangUpIsSeenAfterTheLastPacketAndWithoutASignal) {
  ASSERT_TRUE(send_with_fds(a, "last", {}));
  a.reset();
  EXPECT_EQ(receive_with_fds(b, -1)->bytes, "last");
  EXPECT_EQ(receive_with_fds(b, -1).error().kind, ErrorKind::disconnected);
  EXPECT_EQ(send_with_fds(b, "x", {}).error().kind, ErrorKind::disconnected);
}

TEST_F(FdPassingTest, FullBufferOfANonBlockingSocketIsOverloaded) {
  ASSERT_EQ(::fcntl(a.get(), F_SETFL, O_NONBLOCK), 0);
  const std::string block(1024, 'x');
  Result<void> sent;
  for (int i = 0; i < 100'000 && sent; ++i) sent = send_with_fds(a, block, {});
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().kind, ErrorKind::overloaded);
}

}  // namespace
}  // namespace paceline::process
