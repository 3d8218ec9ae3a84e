#include "algorithms/cluster/worker_spans.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "actors/protocol.h"
#include "actors/spans/span_reader.h"
#include "actors/spans/span_writer.h"
#include "runtime/store/shared_memory.h"
#include "runtime/wire/base64.h"

namespace paceline::cluster {
namespace {

const WorkerId kWorker{3};

actors::ReadSpans read(const WorkerSpans::Copy& copy) {
  auto bytes = wire::from_base64(copy.head);
  bytes.resize(actors::kPageBytes);
  bytes += wire::from_base64(copy.names);
  return actors::read_spans({reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()});
}

class WorkerSpansTest : public testing::Test {
 protected:
  WorkerSpansTest() {
    actors::Call call;
    call.task = TaskId{7};
    call.name = "square";
    call.owner = "driver/1";
    track.begin(call, Instant(std::chrono::seconds(1)));
  }
  process::Fd given() const { return book->fd().duplicate(); }

  std::unique_ptr<actors::SpanBook> book = *actors::SpanBook::create();
  actors::SpanTrack track{*book};
  WorkerSpans sut;
};

TEST_F(WorkerSpansTest, WhatRunsIsCopiedWithItsNames) {
  EXPECT_EQ(sut.running(kWorker).head, "");
  sut.keep(kWorker, 42, given());
  const auto spans = read(sut.running(kWorker));
  ASSERT_EQ(spans.running.size(), 1u);
  EXPECT_EQ(spans.running[0].name.text, "square");
  EXPECT_EQ(spans.running[0].owner, "driver/1");
  EXPECT_LT(sut.running(kWorker).head.size() + sut.running(kWorker).names.size(), 512u) << "only what is used";
  EXPECT_EQ(sut.running(kWorker).over, "");
  track.end(Instant(std::chrono::seconds(2)), false);
  EXPECT_TRUE(read(sut.running(kWorker)).running.empty());
  sut.end(kWorker, Instant(std::chrono::seconds(9)));
  EXPECT_EQ(sut.running(kWorker).head, "");
}

TEST_F(WorkerSpansTest, WhatIsNoMemoryIsNotKept) {
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  sut.keep(kWorker, 42, process::Fd(pipe[0]));
  ::close(pipe[1]);
  EXPECT_TRUE(sut.sources().empty());
}

TEST_F(WorkerSpansTest, TheFirstIsKept) {
  sut.keep(kWorker, 42, given());
  sut.keep(kWorker, 42, *store::create_memory({.name = "other", .size = 4096}));
  EXPECT_EQ(sut.sources().size(), 1u);
  EXPECT_EQ(read(sut.running(kWorker)).running.size(), 1u);
}

TEST_F(WorkerSpansTest, MemoryOfAnotherShapeIsHarmless) {
  constexpr std::uint64_t kWhole = actors::kSpanMemoryBytes;
  for (const std::uint64_t size : {std::uint64_t{0}, std::uint64_t{4096}, kWhole - 4096, kWhole, kWhole + 4096}) {
    for (const bool is_sealed : {false, true}) {
      WorkerSpans other;
      auto fd = *store::create_memory({.name = "other", .size = size, .sealed = store::MemoryShape::Sealed::later});
      const std::string ones(size, '\xff');
      ASSERT_EQ(::pwrite(fd.get(), ones.data(), ones.size(), 0), static_cast<ssize_t>(ones.size()));
      if (is_sealed) {
        ASSERT_TRUE(store::seal_size(fd));
      }
      other.keep(kWorker, 42, std::move(fd));
      EXPECT_EQ(other.sources().size(), is_sealed && size == kWhole ? 1u : 0u) << size;
      EXPECT_TRUE(read(other.running(kWorker)).running.empty());
    }
  }
}

TEST_F(WorkerSpansTest, WhatHasEndedIsKeptForAWhile) {
  track.end(Instant(std::chrono::seconds(2)), true);
  for (std::uint64_t i = 1; i <= WorkerSpans::kEndedMax + 3; ++i) {
    sut.begin(WorkerId{i}, {"driver/1", "counter", "Counter"});
    sut.keep(WorkerId{i}, static_cast<pid_t>(i), given());
  }
  for (std::uint64_t i = 1; i <= WorkerSpans::kEndedMax + 2; ++i)
    sut.end(WorkerId{i}, Instant(std::chrono::seconds(9)));
  const auto sources = sut.sources();
  ASSERT_EQ(sources.size(), 1 + WorkerSpans::kEndedMax);
  EXPECT_FALSE(sources[0].ended);
  EXPECT_EQ(sources[1].worker, WorkerId{WorkerSpans::kEndedMax + 2});
  EXPECT_EQ(sources.back().worker, WorkerId{3});
  EXPECT_EQ(sources[1].ended, Instant(std::chrono::seconds(9)));
  EXPECT_EQ(sources[1].label.type, "Counter");
  EXPECT_EQ(sources.back().label.pid, 3);

  const auto copy = WorkerSpans::copy(sources.back());
  EXPECT_EQ(wire::from_base64(copy.over).size(), actors::kRecordBytes);
  EXPECT_EQ(read(copy).running.size(), 0u);
}

TEST_F(WorkerSpansTest, OneThatGaveNothingIsForgotten) {
  sut.begin(kWorker, {"driver/1", "tasks", ""});
  EXPECT_EQ(sut.running(kWorker).head, "");
  sut.end(kWorker, Instant(std::chrono::seconds(9)));
  EXPECT_TRUE(sut.sources().empty());
}

}  // namespace
}  // namespace paceline::cluster
