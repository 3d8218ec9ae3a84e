#include "algorithms/cluster/worker_output.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "runtime/base/steady_now.h"
#include "runtime/base/test_directory.h"

namespace paceline::cluster {
namespace {

using namespace std::chrono_literals;

const WorkerOutput::Reader kDriver{"driver/1", NodeId{0}};
const WorkerOutput::Reader kOther{"driver/2", NodeId{1}};

/// Real files and a real event loop; what is sent is gathered by driver.
class WorkerOutputTest : public testing::Test {
 protected:
  struct Sent {
    std::string text;  ///< "who: lines", what was left out as "<n>".
    std::size_t bytes = 0;
    int all = 0;
  };

  std::string log(int worker) const { return directory_.path / (std::to_string(worker) + ".log"); }
  void print(int worker, const std::string& text) const {
    std::ofstream(log(worker), std::ios::app | std::ios::binary) << text;
  }
  void watch(int worker, const WorkerOutput::Reader& reader = kDriver, std::int64_t begin = 0) {
    print(worker, "");
    sut_.watch(
        {WorkerId(static_cast<std::uint64_t>(worker)), "w" + std::to_string(worker), log(worker), begin, reader});
  }
  /// Turns of the loop, as its owner makes them, until something holds.
  void run_until(const std::function<bool()>& condition) {
    const Instant end = steady_now() + 60s;
    while (!condition()) {
      ASSERT_LT(steady_now(), end);
      const Instant now = steady_now();
      sut_.tick(now);
      const auto next = sut_.next_deadline();
      ASSERT_TRUE(loop_.run_once(next ? std::clamp<Duration>(*next - now, 0ms, 100ms) : Duration(10ms)));
    }
  }
  void run_until_sent(const std::string& text) {
    run_until([&] { return sent_[kDriver].text == text; });
  }
  void run_until_all() {
    sut_.on_all_wanted(kDriver);
    run_until([&] { return sent_[kDriver].all == 1; });
  }

  test::TestDirectory directory_;
  EventLoop loop_ = *EventLoop::create();
  observe::Log log_ = *observe::Log::open(directory_.path / "agent.log", "agent");
  std::map<WorkerOutput::Reader, Sent> sent_;
  WorkerOutput sut_{loop_, log_, [this](const WorkerOutput::Reader& reader, WorkerOutput::Batch batch) {
                      Sent& to = sent_[reader];
                      for (const auto& part : batch.parts) {
                        to.text += part.who + ": ";
                        if (part.lines.left_out > 0) to.text += "<" + std::to_string(part.lines.left_out) + ">";
                        to.text += part.lines.lines;
                      }
                      to.bytes += batch.bytes;
                      to.all += batch.all ? 1 : 0;
                    }};
};

TEST_F(WorkerOutputTest, TellsOfWholeLinesAsTheyAreWritten) {
  watch(1);
  print(1, "one\ntw");
  run_until_sent("w1: one\n");
  print(1, "o\n");
  run_until_sent("w1: one\nw1: two\n");
  print(1, "three\n");
  run_until_sent("w1: one\nw1: two\nw1: three\n");
}

TEST_F(WorkerOutputTest, WhileNobodyPrintsThereIsNothingToDo) {
  watch(1);
  watch(2, kOther);
  print(1, "one\n");
  run_until_sent("w1: one\n");
  sut_.on_shown(kDriver, sent_[kDriver].bytes);
  run_until([&] { return !sut_.next_deadline(); });
}

TEST_F(WorkerOutputTest, BeginsWhereTheWorkerBegan) {
  print(1, "of another\n");
  watch(1, kDriver, 11);
  print(1, "one\n");
  run_until_sent("w1: one\n");
}

TEST_F(WorkerOutputTest, WhatWasBegunIsALineWhenItsWorkerEnds) {
  watch(1);
  print(1, "one\nlast wor");
  sut_.on_ended(WorkerId{1});
  run_until_sent("w1: one\nlast wor\n");
}

TEST_F(WorkerOutputTest, WhatTheNextWorkerPrintsIntoTheSameLogIsItsOwn) {
  watch(1);
  print(1, "one\nhalf");
  sut_.on_ended(WorkerId{1});
  print(1, "two\n");
  sut_.watch({WorkerId{2}, "w2", log(1), 8, kDriver});
  run_until_all();
  EXPECT_EQ(sent_[kDriver].text, "w1: one\nhalf\nw2: two\n");
}

TEST_F(WorkerOutputTest, AllIsWhatHasBeenPrintedSoFarAlsoOfThoseThatHaveEnded) {
  watch(1);
  watch(2);
  watch(3, kOther);
  print(1, "one\n");
  print(2, "two, not en");
  sut_.on_ended(WorkerId{1});
  run_until_all();
  EXPECT_EQ(sent_[kDriver].text, "w1: one\nw2: two, not en\n");
  EXPECT_EQ(sent_[kOther].all, 0);
}

TEST_F(WorkerOutputTest, AllOfNothingIsAnsweredToo) { run_until_all(); }

TEST_F(WorkerOutputTest, ALogThatWasMovedIsFollowed) {
  watch(1);
  print(1, "one\n");
  run_until_sent("w1: one\n");
  std::filesystem::rename(log(1), log(2));
  print(2, "two\n");
  run_until_sent("w1: one\nw1: two\n");
}

TEST_F(WorkerOutputTest, NoMoreThanABoundIsUnderWayAndWhatIsBeyondIsLeftOutAndCounted) {
  constexpr std::size_t kLines = 1'000'000;
  std::string text;
  for (std::size_t i = 0; i < kLines; ++i) text += "a line of twenty by\n";
  watch(1);
  print(1, text);
  run_until([&] { return !sut_.next_deadline(); });
  const auto counted = [&] {
    std::size_t lines = 0;
    const std::string& sent = sent_[kDriver].text;
    for (std::size_t at = sent.find('<'); at != std::string::npos; at = sent.find('<', at + 1))
      lines += std::stoul(sent.substr(at + 1));
    return lines + static_cast<std::size_t>(std::count(sent.begin(), sent.end(), '\n'));
  };
  EXPECT_LE(sent_[kDriver].bytes, 2 * WorkerOutput::kUnderWayMax);
  std::size_t told = 0;
  run_until([&] {
    sut_.on_shown(kDriver, sent_[kDriver].bytes - std::exchange(told, sent_[kDriver].bytes));
    return counted() == kLines;
  });
  EXPECT_LT(sent_[kDriver].text.size(), text.size() / 2);
}

TEST_F(WorkerOutputTest, OneDriverThatShowsNothingKeepsNoOther) {
  watch(1, kOther);
  print(1, std::string(4 << 20, '\n'));
  watch(2);
  run_until([&] { return sent_[kOther].bytes >= WorkerOutput::kUnderWayMax; });
  print(2, "two\n");
  run_until_sent("w2: two\n");
}

TEST_F(WorkerOutputTest, OfManyWorkersThatHaveEndedAndNobodyIsShownTheOldestAreForgotten) {
  const auto ended = static_cast<int>(WorkerOutput::kEndedMax);
  watch(1);
  print(1, std::string(WorkerOutput::kUnderWayMax, '\n'));
  run_until([&] { return sent_[kDriver].bytes >= WorkerOutput::kUnderWayMax; });
  for (int worker = 2; worker < ended + 4; ++worker) {
    watch(worker);
    print(worker, "last\n");
    sut_.on_ended(WorkerId(static_cast<std::uint64_t>(worker)));
  }
  sut_.on_all_wanted(kDriver);
  std::size_t told = 0;
  run_until([&] {
    sut_.on_shown(kDriver, sent_[kDriver].bytes - std::exchange(told, sent_[kDriver].bytes));
    return sent_[kDriver].all == 1;
  });
  EXPECT_EQ(sent_[kDriver].text.find("w3: last"), std::string::npos);
  EXPECT_NE(sent_[kDriver].text.find("w4: last"), std::string::npos);
}

TEST_F(WorkerOutputTest, WhatIsPrintedBetweenTwoQuestionsIsInTheSecondAnswer) {
  watch(1);
  print(1, "half");
  run_until_all();
  EXPECT_EQ(sent_[kDriver].text, "w1: half\n");
  sent_.clear();
  print(1, " and half");
  run_until_all();
  EXPECT_EQ(sent_[kDriver].text, "w1:  and half\n");
}

TEST_F(WorkerOutputTest, WhoIsForgottenIsSentNothing) {
  watch(1, kOther);
  watch(2);
  sut_.forget(kOther);
  print(1, "one\n");
  print(2, "two\n");
  run_until_sent("w2: two\n");
  EXPECT_EQ(sent_[kOther].text, "");
}

TEST_F(WorkerOutputTest, WhatIsForAHeldDriverWaits) {
  watch(1, kOther);
  sut_.hold_node(NodeId{1}, Instant::max());
  print(1, "one\n");
  watch(2);
  print(2, "two\n");
  run_until_sent("w2: two\n");
  EXPECT_EQ(sent_[kOther].text, "");
  sut_.let_go(kOther);
  run_until([&] { return sent_[kOther].text == "w1: one\n"; });
}

TEST_F(WorkerOutputTest, ADriverThatHasMovedGetsWhatItWasNotSent) {
  const WorkerOutput::Reader before{"driver/1", NodeId{1}};
  watch(1, before);
  watch(2, before);
  print(1, "one\n");
  run_until([&] { return sent_[before].text == "w1: one\n"; });
  sut_.hold_node(NodeId{1}, Instant::max());
  print(1, "two\n");
  print(2, "last\n");
  sut_.on_ended(WorkerId{2});
  sut_.move("driver/1", NodeId{0});
  run_until([&] { return sent_[kDriver].text.size() == std::string("w1: two\nw2: last\n").size(); });
  run_until_all();
  sut_.forget(before);
  print(1, "three\n");
  run_until([&] { return sent_[kDriver].text.ends_with("w1: three\n"); });
  EXPECT_EQ(sent_[before].text, "w1: one\n");
}

}  // namespace
}  // namespace paceline::cluster
