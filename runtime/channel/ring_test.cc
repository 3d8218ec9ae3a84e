#include "runtime/channel/ring.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstring>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "runtime/process/fd.h"

namespace paceline::channel {
namespace {

using namespace std::chrono_literals;

std::span<const std::byte> bytes(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

std::string text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// A ring in plain memory. What lies across its end is not contiguous there, so tests of that use RingChannel; here
/// frames divide the capacity.
class RingTest : public testing::Test {
 protected:
  static constexpr std::uint64_t kCapacity = 256;

  bool write(const std::string& what, std::uint32_t more = 0) {
    if (writer.room(bytes_of_fragment(what.size())) < bytes_of_fragment(what.size())) return false;
    writer.write(bytes(what), more);
    writer.publish();
    return true;
  }
  std::string read() {
    RingReader::Fragment fragment;
    switch (reader.next(fragment)) {
      case RingReader::Found::nothing: return "nothing";
      case RingReader::Found::nonsense: return "nonsense";
      case RingReader::Found::fragment: break;
    }
    std::string what = text(fragment.bytes);
    reader.pop();
    return what;
  }
  bool bell_rang() {
    std::uint64_t count = 0;
    return ::read(bell.get(), &count, sizeof count) == sizeof count;
  }

  RingHeader header;
  std::vector<std::byte> memory = std::vector<std::byte>(2 * kCapacity);
  process::Fd bell{::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
  RingWriter writer{{&header, memory.data(), kCapacity}, bell.get()};
  RingReader reader{{&header, memory.data(), kCapacity}, -1};
};

TEST_F(RingTest, GivesWhatWasWrittenInOrder) {
  EXPECT_EQ(read(), "nothing");
  EXPECT_TRUE(write("one"));
  EXPECT_TRUE(write(""));
  EXPECT_TRUE(write("three"));
  EXPECT_EQ(read(), "one");
  EXPECT_EQ(read(), "");
  EXPECT_EQ(read(), "three");
  EXPECT_EQ(read(), "nothing");
}

TEST_F(RingTest, ShowsNothingBeforeItIsPublished) {
  writer.write(bytes("early"), 0);
  EXPECT_EQ(read(), "nothing");
  writer.publish();
  EXPECT_EQ(read(), "early");
}

TEST_F(RingTest, SaysWhatFollowsAFragment) {
  EXPECT_TRUE(write("a", kMoreOfFrame | kMoreFrames));
  RingReader::Fragment fragment;
  ASSERT_EQ(reader.next(fragment), RingReader::Found::fragment);
  EXPECT_EQ(fragment.more, kMoreOfFrame | kMoreFrames);
}

TEST_F(RingTest, AFullRingHasRoomAgainOnceItWasRead) {
  const std::string eighth(24, 'x');  // 32 bytes with its header.
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(write(eighth));
  EXPECT_FALSE(write(""));
  EXPECT_FALSE(writer.wait_for_room(8, 0ns, 3));
  EXPECT_EQ(read(), eighth);
  EXPECT_FALSE(write(""));  // Room is shown in quarters: that costs less.
  EXPECT_EQ(read(), eighth);
  EXPECT_TRUE(write(eighth));
  EXPECT_TRUE(write(eighth));
  EXPECT_FALSE(write(eighth));
}

TEST_F(RingTest, AnEmptyRingShowsAllOfItsRoom) {
  EXPECT_TRUE(write(""));
  EXPECT_EQ(read(), "");
  EXPECT_EQ(read(), "nothing");
  EXPECT_EQ(writer.room(kCapacity), kCapacity);
}

TEST_F(RingTest, NobodyWakesAReaderThatIsAwake) {
  EXPECT_TRUE(write("news"));
  EXPECT_FALSE(bell_rang());
}

TEST_F(RingTest, AReaderThatSleepsInAnEventLoopIsWokenOnce) {
  EXPECT_TRUE(reader.arm(Sleep::on_bell));
  EXPECT_TRUE(reader.is_armed(Sleep::on_bell));
  EXPECT_TRUE(write("one"));
  EXPECT_TRUE(write("two"));
  EXPECT_FALSE(reader.is_armed(Sleep::on_bell));
  std::uint64_t count = 0;
  ASSERT_EQ(::read(bell.get(), &count, sizeof count), static_cast<ssize_t>(sizeof count));
  EXPECT_EQ(count, 1u);
}

TEST_F(RingTest, AReaderDoesNotFallAsleepOverNews) {
  EXPECT_TRUE(write("news"));
  EXPECT_FALSE(reader.arm(Sleep::on_bell));
  EXPECT_TRUE(reader.wait(-1ns, 0));
  EXPECT_EQ(read(), "news");
  EXPECT_FALSE(reader.wait(0ns, 10));
}

TEST_F(RingTest, AReaderOnAFutexIsWoken) {
  std::thread other([&] {
    while (!reader.is_armed(Sleep::on_futex)) std::this_thread::yield();
    write("news");
  });
  EXPECT_TRUE(reader.wait(60s, 0));
  other.join();
  EXPECT_EQ(read(), "news");
}

TEST_F(RingTest, AWriterThatWaitsForRoomIsWoken) {
  const std::string half(kCapacity / 2 - sizeof(FragmentHeader), 'x');
  EXPECT_TRUE(write(half));
  EXPECT_TRUE(write(half));
  std::thread other([&] {
    while (header.writer_sleeps.load() == 0) std::this_thread::yield();
    EXPECT_EQ(read(), half);
  });
  EXPECT_TRUE(writer.wait_for_room(kCapacity / 2, 60s, 0));
  other.join();
}

TEST_F(RingTest, AHostileWriterBreaksTheRingAndNothingElse) {
  const auto found = [&](std::uint64_t tail, FragmentHeader first) {
    header.tail = tail;
    std::memcpy(memory.data(), &first, sizeof first);
    RingReader::Fragment fragment;
    return RingReader({&header, memory.data(), kCapacity}, -1).next(fragment);
  };
  EXPECT_EQ(found(16, {8, 0}), RingReader::Found::fragment);
  EXPECT_EQ(found(kCapacity + 8, {8, 0}), RingReader::Found::nonsense) << "more than there is room for";
  EXPECT_EQ(found(4, {0, 0}), RingReader::Found::nonsense) << "less than a header";
  EXPECT_EQ(found(64, {60, 0}), RingReader::Found::nonsense) << "more than was written";
  EXPECT_EQ(found(64, {0xffffffff, 0}), RingReader::Found::nonsense);
  EXPECT_EQ(found(16, {8, 4}), RingReader::Found::nonsense) << "a bit that means nothing";
  header.tail = kCapacity + 8;
  EXPECT_EQ(read(), "nonsense");
  EXPECT_EQ(read(), "nonsense");
}

TEST_F(RingTest, AHostileReaderGetsNoRoom) {
  EXPECT_TRUE(write("one"));
  header.head = kCapacity;  // It has read what was never written.
  EXPECT_EQ(writer.room(kCapacity), 0u);
  for (std::uint64_t claim : {~std::uint64_t{0}, std::uint64_t{1} << 63, std::uint64_t{3}}) {
    header.head = claim;
    EXPECT_LE(writer.room(kCapacity), kCapacity);
  }
}

/// Against a queue: any sequence of writes and reads gives the same.
TEST_F(RingTest, IsAQueueUnderAnySchedule) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    RingHeader fresh;
    RingWriter in({&fresh, memory.data(), kCapacity}, -1);
    RingReader out({&fresh, memory.data(), kCapacity}, -1);
    std::deque<std::string> queue;
    for (int step = 0; step < 400; ++step) {
      if (random() % 2 == 0) {
        const std::string what(24, static_cast<char>('a' + random() % 26));
        if (in.room(32) < 32) continue;
        in.write(bytes(what), 0);
        in.publish();
        queue.push_back(what);
      } else if (RingReader::Fragment found; out.next(found) == RingReader::Found::fragment) {
        ASSERT_FALSE(queue.empty());
        ASSERT_EQ(text(found.bytes), queue.front());
        queue.pop_front();
        out.pop();
      } else {
        ASSERT_TRUE(queue.empty()) << "seed " << seed << ", step " << step;
      }
    }
  }
}

}  // namespace
}  // namespace paceline::channel
