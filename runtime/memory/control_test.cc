#include "runtime/memory/control.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <stdexcept>
#include <string>
#include <thread>

namespace paceline::memory {
namespace {

class ControlPageTest : public testing::Test {
 protected:
  ControlPageTest()
      : agent(must(ControlPage::create())), fd(*agent.read_only_fd()), worker(must(ControlPage::map(fd))) {}
  static ControlPage must(Result<ControlPage> page) {
    if (!page) throw std::runtime_error(page.error().text);
    return std::move(*page);
  }
  ControlPage agent;
  process::Fd fd;
  ControlPage worker;
};

TEST_F(ControlPageTest, BeginsWithNothingAsked) {
  const auto& words = worker.words();
  EXPECT_EQ(words.stop.load(), 0u);
  EXPECT_EQ(words.abandoned.load(), -1);
  EXPECT_EQ(words.executed.load(), -1);
  EXPECT_EQ(words.hold.load(), -1);
  EXPECT_EQ(words.evaluate.load(), -1);
  EXPECT_EQ(words.last.load(), INT64_MAX);
  EXPECT_EQ(words.capture_wanted.load(), 0u);
  EXPECT_FALSE(worker.verdict(0));
}

TEST_F(ControlPageTest, TheWorkerSeesWhatTheAgentStores) {
  agent.words().executed.store(12);
  EXPECT_EQ(worker.words().executed.load(), 12);
}

TEST_F(ControlPageTest, RingingChangesTheBell) {
  const auto seen = worker.bell();
  EXPECT_FALSE(worker.wait(seen, Duration::zero()));
  agent.ring();
  EXPECT_NE(worker.bell(), seen);
  EXPECT_TRUE(worker.wait(seen, Duration::zero()));
}

TEST_F(ControlPageTest, EachVerdictIsSeenOnceByItsNumber) {
  const WorkerVerdict first{.own = 3,
                            .next = 6,
                            .next_round = 10,
                            .skipped = 2,
                            .fresh = false,
                            .averaged = true,
                            .end = false,
                            .lr_may_decay = false,
                            .scale = 0.25};
  agent.set_verdict(first);
  const auto one = worker.verdict(0);
  ASSERT_TRUE(one);
  EXPECT_EQ(one->number, 1u);
  EXPECT_EQ(one->verdict, first);
  EXPECT_FALSE(worker.verdict(one->number));
  agent.set_verdict({.own = 6, .next = 7, .next_round = 10, .end = true});
  const auto two = worker.verdict(one->number);
  ASSERT_TRUE(two);
  EXPECT_EQ(two->number, 2u);
  EXPECT_TRUE(two->verdict.end);
  EXPECT_TRUE(two->verdict.fresh);
  EXPECT_TRUE(two->verdict.lr_may_decay);
}

// For TSan, and for the sequence lock: the agent keeps its word only to write after a report; this one does not.
TEST_F(ControlPageTest, AVerdictReadWhileItIsOverwrittenIsNeverAMixture) {
  constexpr std::int64_t kLast = 20'000;
  std::thread writer([this] {
    for (std::int64_t t = 1; t <= kLast; ++t) {
      agent.set_verdict({.own = t, .next = 2 * t, .next_round = 3 * t, .skipped = 4 * t, .end = t == kLast});
      agent.ring();
    }
  });
  std::uint64_t seen = 0;
  for (bool end = false; !end;) {
    const auto bell = worker.bell();
    if (const auto got = worker.verdict(seen)) {
      const auto& v = got->verdict;
      EXPECT_GT(got->number, seen);
      seen = got->number;
      EXPECT_EQ(v.own, static_cast<std::int64_t>(seen));
      EXPECT_EQ(v.next, 2 * v.own);
      EXPECT_EQ(v.next_round, 3 * v.own);
      EXPECT_EQ(v.skipped, 4 * v.own);
      end = v.end;
    } else if (!worker.wait(bell, std::chrono::seconds(20))) {
      ADD_FAILURE() << "a ring was lost";
      break;
    }
  }
  writer.join();
}

TEST_F(ControlPageTest, TheDescriptorGivesNoWayToWrite) {
  EXPECT_EQ(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0), MAP_FAILED);
  EXPECT_LT(::pwrite(fd.get(), "x", 1, 0), 0);
  // Not even opened anew.
  const int again = ::open(("/proc/self/fd/" + std::to_string(fd.get())).c_str(), O_RDWR | O_CLOEXEC);
  if (again >= 0) {
    EXPECT_EQ(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, again, 0), MAP_FAILED);
    EXPECT_LT(::pwrite(again, "x", 1, 0), 0);
    ::close(again);
  }
}

TEST_F(ControlPageTest, SomethingElseIsRefused) {
  EXPECT_FALSE(ControlPage::map(process::Fd()));
  const process::Fd other(::memfd_create("other", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(other.get(), 4096), 0);
  EXPECT_FALSE(ControlPage::map(other)) << "its size is not sealed";
  ASSERT_EQ(::fcntl(other.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
  EXPECT_FALSE(ControlPage::map(other)) << "it holds zeros";
}

TEST_F(ControlPageTest, SpinningIsForMachinesWithACoreForEveryRunnableThread) {
  EXPECT_GT(ControlPage::patience(4, 4).spins, 0);
  EXPECT_EQ(ControlPage::patience(2, 4).spins, 0);
}

}  // namespace
}  // namespace paceline::memory
