#include <gmock/gmock.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <random>
#include <stdexcept>

#include "actors/protocol.h"
#include "actors/spans/span_reader.h"
#include "actors/spans/span_writer.h"
#include "actors/worker/executor.h"

namespace paceline::actors {
namespace {

using std::chrono::nanoseconds;
using testing::HasSubstr;

constexpr Instant at(int ns) { return Instant(nanoseconds(ns)); }

class SpansTest : public testing::Test {
 protected:
  std::vector<std::byte> bytes() const {
    std::vector<std::byte> bytes(kSpanMemoryBytes);
    EXPECT_EQ(::pread(book->fd().get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
    return bytes;
  }
  ReadSpans read() const { return read_spans(bytes()); }
  static Call task(std::uint64_t id, const std::string& name) {
    Call call;
    call.task = TaskId{id};
    call.owner = "driver/1";
    call.name = name;
    return call;
  }
  void run(int count, const std::string& name) {
    for (int i = 0; i < count; ++i) {
      track.begin(task(static_cast<std::uint64_t>(i) + 1, name), at(10 * i + 1));
      track.end(at(10 * i + 6), i % 2 == 1);
    }
  }

  std::unique_ptr<SpanBook> book = *SpanBook::create();
  SpanTrack track{*book};
};

TEST_F(SpansTest, WhatRunsIsSeenUntilItIsOver) {
  EXPECT_TRUE(read().running.empty());
  track.begin(task(7, "square"), at(100));
  const auto running = read().running;
  ASSERT_EQ(running.size(), 1u);
  EXPECT_EQ(running[0].task, TaskId{7});
  EXPECT_EQ(running[0].name, (SpanName{NameKind::text, "square"}));
  EXPECT_EQ(running[0].owner, "driver/1");
  EXPECT_EQ(running[0].began_ns, 100);
  EXPECT_TRUE(read().over.empty());

  track.end(at(150), true);
  EXPECT_TRUE(read().running.empty());
  const auto over = read().over;
  ASSERT_EQ(over.size(), 1u);
  EXPECT_EQ(over[0].ended_ns, 150);
  EXPECT_TRUE(over[0].failed);
  EXPECT_FALSE(over[0].coroutine);
}

TEST_F(SpansTest, ThreadsHaveTracksOfTheirOwn) {
  SpanTrack other(*book);
  track.begin(task(1, "one"), at(1));
  other.begin(task(2, "two"), at(2));
  const auto running = read().running;
  ASSERT_EQ(running.size(), 2u);
  EXPECT_EQ(running[0].name.text, "one");
  EXPECT_EQ(running[1].name.text, "two");
  EXPECT_NE(running[0].thread, running[1].thread);
}

TEST_F(SpansTest, ACoroutineThatWaitsLeavesTheThreadToOthers) {
  track.begin(task(1, "waits"), at(1));
  const auto left = track.leave();
  EXPECT_TRUE(read().running.empty());
  track.begin(task(2, "other"), at(2));
  track.end(at(3), false);
  track.end(left, at(9), false);
  const auto over = read().over;
  ASSERT_EQ(over.size(), 2u);
  EXPECT_EQ(over[1].name.text, "waits");
  EXPECT_EQ(over[1].began_ns, 1);
  EXPECT_TRUE(over[1].coroutine);
}

TEST_F(SpansTest, TheNewestAreKept) {
  run(static_cast<int>(kSpansMax) + 5, "x");
  const auto spans = read();
  ASSERT_EQ(spans.over.size(), kSpansMax);
  EXPECT_EQ(spans.lost, 5u);
  EXPECT_EQ(spans.over.front().sequence, 6u);
  EXPECT_EQ(spans.over.back().sequence, kSpansMax + 5);
}

TEST_F(SpansTest, WhereNamesHaveNoRoomCalleesHave) {
  for (int i = 0; i < 5'000; ++i) {
    track.begin(task(1, "task number " + std::to_string(i)), at(1));
    track.end(at(2), false);
  }
  track.begin(task(2, "task number 5000"), at(1));
  track.begins(kCallable<int (*)(int)>, to_bytes(*name_of(+[](int x) { return x; })), "");
  const auto running = read().running;
  ASSERT_EQ(running.size(), 1u);
  EXPECT_EQ(running[0].name.kind, NameKind::function);
  EXPECT_LE(read().over.back().name.text.size(), 0u) << "no name of another";
}

int square(int x) {
  if (x < 0) throw std::invalid_argument("negative");
  return x * x;
}

TEST_F(SpansTest, AnExecutorWritesDownWhatItCalls) {
  worker::Executor executor([] { return Place{0, "worker 1", ""}; }, {}, book.get());
  for (const int x : {2, -2}) {
    auto call = task(3, "");
    call.function = *name_of(&run_function<int (*)(int), std::tuple<int>>);
    call.arguments = {to_bytes(*name_of(&square)), to_bytes(x)};
    EXPECT_EQ(executor.call(std::move(call))->value.has_value(), x > 0);
  }
  const auto spans = read();
  EXPECT_TRUE(spans.running.empty());
  ASSERT_EQ(spans.over.size(), 2u);
  EXPECT_EQ(spans.over[0].name, spans.over[1].name);
  EXPECT_EQ(spans.over[0].name.kind, NameKind::function);
  EXPECT_THAT(spans.over[0].name.text, HasSubstr(" " + *executable_build() + " /"));
  EXPECT_FALSE(spans.over[0].failed);
  EXPECT_TRUE(spans.over[1].failed);
  EXPECT_LE(spans.over[0].ended_ns, spans.over[1].began_ns);
}

TEST_F(SpansTest, ATornRecordIsLeftOut) {
  run(3, "x");
  auto torn = bytes();
  const std::size_t second = offsetof(SpanMemory, spans) + kRecordBytes;
  torn[second + offsetof(SpanRecord, ended_ns)] ^= std::byte{1};
  EXPECT_EQ(read_spans(torn).over.size(), 2u);
  EXPECT_EQ(read_spans(bytes()).over.size(), 3u);
}

TEST_F(SpansTest, WhatIsNotThereIsLeftOut) {
  run(3, "x");
  const auto all = bytes();
  const auto first = [&](std::size_t size) { return read_spans({all.data(), size}); };
  EXPECT_EQ(first(offsetof(SpanMemory, spans) + 2 * kRecordBytes + 63).over.size(), 2u);
  for (const std::size_t size : {0, 1, 8, 24, 63, 64, 4096, 4097, 4111, 4112})
    EXPECT_TRUE(first(size).over.empty()) << size;
  auto other = all;
  other[0] ^= std::byte{1};
  EXPECT_TRUE(read_spans(other).over.empty()) << "no such memory";
}

/// Valid records whose names, owners and times are anything.
TEST_F(SpansTest, NothingThatStandsThereIsBelieved) {
  std::mt19937_64 random(7);
  run(100, "x");
  const auto good = bytes();
  for (int round = 0; round < 300; ++round) {
    auto bad = good;
    for (std::size_t i = 0; i < 100; ++i) {
      const std::size_t offset = offsetof(SpanMemory, spans) + i * kRecordBytes;
      SpanRecord record;
      std::memcpy(&record, bad.data() + offset, sizeof record);
      record.name = static_cast<std::uint32_t>(random() >> (random() % 32 + 32));
      record.owner = static_cast<std::uint32_t>(random() >> (random() % 32 + 32));
      if (random() % 2 == 0) record.began_ns = static_cast<std::int64_t>(random());
      if (random() % 4 == 0) record.ended_ns = static_cast<std::int64_t>(random());
      record.check = record.checked();
      std::memcpy(bad.data() + offset, &record, sizeof record);
    }
    for (int i = 0; i < 200; ++i) bad[kPageBytes + random() % 200] = static_cast<std::byte>(random());
    const std::uint64_t used = random() >> (random() % 64);
    std::memcpy(bad.data() + offsetof(SpanHeader, names), &used, sizeof used);
    const auto spans = read_spans(bad);
    EXPECT_LE(spans.over.size(), 100u);
    for (const auto& span : spans.over) {
      EXPECT_GE(span.began_ns, 0);
      EXPECT_GE(span.ended_ns, span.began_ns);
      EXPECT_LE(span.name.text.size(), kNameMax);
      EXPECT_LE(span.owner.size(), kNameMax);
    }
  }
  for (int round = 0; round < 50; ++round) {
    auto noise = good;
    for (std::size_t i = 8; i < noise.size(); i += 8) {
      const auto word = random();
      std::memcpy(noise.data() + i, &word, sizeof word);
    }
    EXPECT_TRUE(read_spans(noise).over.empty());
    EXPECT_TRUE(read_spans(noise).running.empty());
  }
}

}  // namespace
}  // namespace paceline::actors
