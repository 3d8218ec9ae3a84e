#include "actors/durable/call_records.h"

#include <gtest/gtest.h>

#include <sys/mman.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace paceline::actors {
namespace {

using Kept = CallRecords::Kept;

Result<void> there(std::size_t, std::size_t) { return {}; }

Bytes text(const std::string& text) {
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + text.size()};
}

class CallRecordsTest : public testing::Test {
 protected:
  ~CallRecordsTest() override { ::munmap(memory_, CallRecords::memory_for()); }
  CallRecords open() { return {memory_, there}; }
  void add(ProcessId caller, std::uint64_t number, const Bytes& answer, bool ok = true) {
    ASSERT_TRUE(sut.add(caller, number, ok, answer, version_++));
  }
  static Kept find(const CallRecords& records, ProcessId caller, std::uint64_t number) {
    CallRecords::Answer answer;
    return records.find(caller, number, answer);
  }

  std::byte* memory_ = static_cast<std::byte*>(::mmap(nullptr, CallRecords::memory_for(), PROT_READ | PROT_WRITE,
                                                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  CallRecords sut{memory_, there};
  std::uint64_t version_ = 1;
};

TEST_F(CallRecordsTest, TheNextProcessKnowsWhatWasAnswered) {
  add(7, 1, text("one"));
  add(8, 5, text("failed"), false);
  auto next = open();
  CallRecords::Answer answer;
  ASSERT_EQ(next.find(7, 1, answer), Kept::kept);
  EXPECT_TRUE(answer.ok);
  EXPECT_EQ(answer.bytes, text("one"));
  ASSERT_EQ(next.find(8, 5, answer), Kept::kept);
  EXPECT_FALSE(answer.ok);
  EXPECT_EQ(find(next, 7, 2), Kept::not_done);
  EXPECT_EQ(find(next, 9, 1), Kept::not_done);
}

TEST_F(CallRecordsTest, WhatWasNotPublishedWasNotDone) {
  add(7, 1, text("one"));
  ASSERT_TRUE(sut.add(7, 2, true, text("two"), version_));
  auto next = open();
  next.roll_back(version_);
  EXPECT_EQ(find(next, 7, 1), Kept::kept);
  EXPECT_EQ(find(next, 7, 2), Kept::not_done);
}

TEST_F(CallRecordsTest, WhatWasDoneIsNeverTakenForNotDoneHoweverLittleIsKept) {
  const Bytes large(CallRecords::kAnswerMax);
  add(7, 1, Bytes(CallRecords::kAnswerMax + 1));
  EXPECT_EQ(find(sut, 7, 1), Kept::lost);
  add(7, 2, large);
  for (std::uint64_t number = 1; number <= 4; ++number) add(8, number, large);
  EXPECT_EQ(find(sut, 7, 2), Kept::lost);
  EXPECT_EQ(find(sut, 8, 4), Kept::kept);
  EXPECT_EQ(find(open(), 7, 2), Kept::lost);
}

TEST_F(CallRecordsTest, AProcessThatHasTheIdOfAnEarlierOneBeginsAnew) {
  add(7, 1000, text("of the first"));
  add(7, 3, text("of the second"));
  EXPECT_EQ(find(sut, 7, 4), Kept::not_done);
  EXPECT_EQ(find(sut, 7, 1000), Kept::not_done);
}

TEST_F(CallRecordsTest, WhoHasCalledLeastLatelyIsForgottenAndNotTakenForNew) {
  for (ProcessId caller = 1; caller <= CallRecords::kCallersMax + 1; ++caller) add(caller, 1, {});
  EXPECT_EQ(find(sut, 1, 1), Kept::lost);
  EXPECT_EQ(find(sut, 2, 1), Kept::kept);
  EXPECT_EQ(find(sut, 2, 2), Kept::not_done);
  EXPECT_EQ(find(sut, CallRecords::kCallersMax + 1, 1), Kept::kept);
}

TEST_F(CallRecordsTest, InRandomLivesEachAnswerIsTheOneThatWasGivenOrLost) {
  std::mt19937 random(3);
  std::map<std::pair<ProcessId, std::uint64_t>, Bytes> given;
  std::map<ProcessId, std::uint64_t> last;
  CallRecords records = open();
  for (int i = 0; i < 4000; ++i) {
    const ProcessId caller = 1 + random() % 5;
    const std::uint64_t number = last[caller] + 1 + random() % 3;
    const Bytes answer(random() % 50 == 0 ? random() % (CallRecords::kAnswerMax + 10) : random() % 200,
                       static_cast<std::byte>(random()));
    ASSERT_TRUE(records.add(caller, number, true, answer, version_));
    if (random() % 10 == 0) {
      records = open();
      records.roll_back(version_);
      EXPECT_NE(find(records, caller, number), Kept::kept);
      continue;
    }
    ++version_;
    last[caller] = number;
    given[{caller, number}] = answer;
    const std::uint64_t asked = number - std::min<std::uint64_t>(number - 1, random() % 100);
    CallRecords::Answer kept;
    const auto found = records.find(caller, asked, kept);
    ASSERT_NE(found, Kept::not_done);
    if (found == Kept::kept) {
      ASSERT_EQ(kept.bytes, (given[{caller, asked}]));
    }
  }
}

}  // namespace
}  // namespace paceline::actors
