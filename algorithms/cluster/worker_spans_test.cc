#include "algorithms/cluster/worker_spans.h"

#include <gtest/gtest.h>

#include "actors/protocol.h"
#include "actors/spans/span_reader.h"
#include "actors/spans/span_writer.h"
#include "runtime/memory/memfd.h"

namespace paceline::cluster {
namespace {

const WorkerId kWorker{3};

actors::ReadSpans read(const std::string& base64) {
  const auto bytes = wire::from_base64(base64);
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
  process::Fd given() const { return process::Fd(::dup(book->fd())); }

  std::unique_ptr<actors::SpanBook> book = *actors::SpanBook::create();
  actors::SpanTrack track{*book};
  WorkerSpans sut;
};

TEST_F(WorkerSpansTest, WhatRunsIsCopiedWithItsNames) {
  EXPECT_EQ(sut.running(kWorker), "");
  sut.keep(kWorker, given());
  const auto spans = read(sut.running(kWorker));
  ASSERT_EQ(spans.running.size(), 1u);
  EXPECT_EQ(spans.running[0].name.text, "square");
  EXPECT_EQ(spans.running[0].owner, "driver/1");
  EXPECT_LT(sut.running(kWorker).size(), 8u * 1024) << "of the names only those that there are";
  track.end(Instant(std::chrono::seconds(2)), false);
  EXPECT_TRUE(read(sut.running(kWorker)).running.empty());
  sut.forget(kWorker);
  EXPECT_EQ(sut.running(kWorker), "");
}

TEST_F(WorkerSpansTest, WhatIsNoMemoryIsNotKept) {
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  sut.keep(kWorker, process::Fd(pipe[0]));
  ::close(pipe[1]);
  EXPECT_EQ(sut.size(), 0u);
}

TEST_F(WorkerSpansTest, TheFirstIsKept) {
  sut.keep(kWorker, given());
  sut.keep(kWorker, process::Fd(*memory::create_memfd("other", 4096)));
  EXPECT_EQ(sut.size(), 1u);
  EXPECT_EQ(read(sut.running(kWorker)).running.size(), 1u);
}

TEST_F(WorkerSpansTest, MemoryOfAnotherShapeIsHarmless) {
  for (const std::uint64_t size : {0, 10, 4096, 5000}) {
    WorkerSpans other;
    process::Fd fd(*memory::create_memfd("other", size));
    const std::string ones(std::min<std::size_t>(size, 4096), '\xff');
    ASSERT_EQ(::pwrite(fd.get(), ones.data(), ones.size(), 0), static_cast<ssize_t>(ones.size()));
    other.keep(kWorker, std::move(fd));
    EXPECT_TRUE(read(other.running(kWorker)).running.empty());
  }
}

}  // namespace
}  // namespace paceline::cluster
