#include "scheduler/ledger.h"

#include <gtest/gtest.h>

#include <ostream>

namespace paceline::scheduler {

void PrintTo(const Ledger::Row& row, std::ostream* out) {
  *out << "epoch " << row.epoch << ": " << row.committed << " committed, " << row.abandoned << " abandoned, "
       << row.skipped << " skipped, " << row.late << " late, " << row.lost << " lost, " << row.twice << " twice, "
       << row.open << " open";
}

namespace {

using Row = Ledger::Row;

/// Two workers, 43 samples in mini-batches of 2: ten a worker and epoch, and a tail of 3.
Ledger::Options two_workers() {
  return {.workers = 2, .samples = 43, .batch = 2, .updates = 30, .epoch_end = 10, .left = 43};
}

class LedgerTest : public testing::Test {
 protected:
  explicit LedgerTest(const Ledger::Options& options = two_workers()) : sut_(options) {
    sut_.add(Rank{0}, false);
    sut_.add(Rank{1}, false);
  }
  /// Each does that, and it is used: in each other's model, or in its own only.
  void both(std::int64_t since, std::int64_t through, bool held = true) {
    for (const Rank rank : {Rank{0}, Rank{1}}) {
      sut_.on_done(rank, since, through);
      sut_.on_used(rank, through);
      if (held) sut_.on_held(sut_.contents(rank));
    }
  }
  std::vector<Row> closed() { return without_size(sut_.take_closed()); }
  std::vector<Row> open() const { return without_size(sut_.open()); }

  Ledger sut_;

 private:
  static std::vector<Row> without_size(std::vector<Row> rows) {
    for (Row& row : rows) row.samples = row.tail = 0;
    return rows;
  }
};

TEST_F(LedgerTest, WhatIsUsedIsCommittedAndAnEpochCloses) {
  both(0, 9);
  EXPECT_TRUE(closed().empty());
  EXPECT_EQ(open(), (std::vector{Row{.epoch = 0, .committed = 36}}));
  both(9, 10);
  EXPECT_EQ(closed(), (std::vector{Row{.epoch = 0, .committed = 40}}));
  EXPECT_TRUE(closed().empty());
  EXPECT_TRUE(open().empty());
}

TEST_F(LedgerTest, WhatTheNextLegDoesAgainIsNothingOfThisOne) {
  both(0, 7);
  sut_.on_done(Rank{1}, 7, 8);
  sut_.finish(7);
  EXPECT_EQ(open(), (std::vector{Row{.epoch = 0, .committed = 28, .late = 2}}));
  sut_.forget_from(7);
  EXPECT_TRUE(closed().empty());
  EXPECT_EQ(open(), (std::vector{Row{.epoch = 0, .committed = 28}}));
}

TEST_F(LedgerTest, WhatIsDoneIsInHandUntilItIsUsed) {
  sut_.on_done(Rank{0}, 0, 10);
  sut_.on_done(Rank{0}, 0, 10);
  EXPECT_EQ(open(), (std::vector{Row{.epoch = 0, .open = 20}}));
  sut_.on_used(Rank{0}, 4);
  EXPECT_EQ(open(), (std::vector{Row{.epoch = 0, .committed = 8, .open = 12}}));
  both(0, 10);
  EXPECT_EQ(closed(), (std::vector{Row{.epoch = 0, .committed = 40}}));
}

TEST_F(LedgerTest, AModelThatIsAveragedAgainCommitsItsBodiesOnce) {
  sut_.on_done(Rank{0}, 0, 3);
  sut_.on_used(Rank{0}, 3);
  sut_.on_used(Rank{0}, 3);
  EXPECT_EQ(open(), (std::vector{Row{.epoch = 0, .committed = 6}}));
}

TEST_F(LedgerTest, AGradientThatIsUsedAgainCountsTwice) {
  sut_.on_done(Rank{0}, 0, 3);
  sut_.on_used(Rank{0}, 3, true);
  sut_.on_used(Rank{0}, 3, true);
  EXPECT_EQ(open(), (std::vector{Row{.epoch = 0, .committed = 6, .twice = 2}}));
}

TEST_F(LedgerTest, WhatAWorkerJumpsOverIsSkipped) {
  both(0, 2);
  sut_.on_done(Rank{1}, 7, 10);
  sut_.on_used(Rank{1}, 10);
  sut_.on_done(Rank{0}, 2, 10);
  sut_.on_used(Rank{0}, 10);
  EXPECT_EQ(closed(), (std::vector{Row{.epoch = 0, .committed = 30, .skipped = 10}}));
}

TEST_F(LedgerTest, AnEpochIsOverForAllOrForNobody) {
  sut_.on_done(Rank{0}, 0, 25);
  sut_.on_used(Rank{0}, 25);
  EXPECT_TRUE(closed().empty());
  sut_.on_done(Rank{1}, 0, 25);
  EXPECT_TRUE(closed().empty()) << "it is in hand";
  sut_.on_used(Rank{1}, 25);
  EXPECT_EQ(closed(), (std::vector{Row{.epoch = 0, .committed = 40}, Row{.epoch = 1, .committed = 40}}));
  EXPECT_EQ(open(), (std::vector{Row{.epoch = 2, .committed = 20}}));
}

TEST_F(LedgerTest, WhoEndsLosesWhatItHadInHandAndWhatNobodyDoesForIt) {
  both(0, 2);
  sut_.on_done(Rank{1}, 2, 4);
  sut_.on_left(Rank{1}, true);
  sut_.on_done(Rank{0}, 2, 10);
  sut_.on_used(Rank{0}, 10);
  sut_.settle(10);
  EXPECT_TRUE(closed().empty()) << "what an averaging has of it can still be used";
  sut_.settle(12);
  EXPECT_EQ(closed(), (std::vector{Row{.epoch = 0, .committed = 24, .lost = 16}}));
}

TEST_F(LedgerTest, WhatAnAveragingHasOfWhoEndsIsUsed) {
  sut_.on_done(Rank{1}, 0, 2);
  const auto contents = sut_.contents(Rank{1});
  sut_.on_left(Rank{1}, true);
  sut_.on_used(Rank{1}, 2);
  sut_.on_taken(Rank{0}, contents);
  EXPECT_EQ(open(), (std::vector{Row{.epoch = 0, .committed = 4}}));
}

TEST_F(LedgerTest, WhoIsAskedToLeaveLosesNothing) {
  both(0, 2);
  sut_.on_left(Rank{1}, false);
  sut_.on_done(Rank{0}, 2, 10);
  sut_.on_used(Rank{0}, 10);
  sut_.settle(12);
  EXPECT_EQ(closed(), (std::vector{Row{.epoch = 0, .committed = 24, .skipped = 16}}));
}

TEST_F(LedgerTest, WhoComesBackGoesOnWhereItBegins) {
  both(0, 2);
  sut_.on_left(Rank{1}, true);
  sut_.on_done(Rank{1}, 5, 10);
  sut_.on_used(Rank{1}, 10);
  sut_.on_done(Rank{0}, 2, 10);
  sut_.on_used(Rank{0}, 10);
  EXPECT_EQ(closed(), (std::vector{Row{.epoch = 0, .committed = 34, .lost = 6}}));
}

TEST_F(LedgerTest, WhoComesBackTooEarlyDoesThingsTwice) {
  both(0, 6);
  sut_.on_left(Rank{1}, true);
  sut_.on_done(Rank{1}, 4, 10);
  sut_.on_used(Rank{1}, 10);
  EXPECT_EQ(open(), (std::vector{Row{.epoch = 0, .committed = 32, .twice = 4}}));
}

TEST_F(LedgerTest, WhatCameToNothingWhenAnothersModelIsTakenIsLate) {
  sut_.on_done(Rank{1}, 0, 4);
  sut_.on_replaced(Rank{1});
  sut_.on_done(Rank{1}, 4, 6);
  sut_.on_used(Rank{1}, 6);
  EXPECT_EQ(open(), (std::vector{Row{.epoch = 0, .committed = 4, .late = 8}}));
}

TEST_F(LedgerTest, WhatIsNotThereWhenTheJobIsOverIsLate) {
  both(0, 8);
  sut_.on_done(Rank{1}, 8, 9);
  sut_.finish(10);
  sut_.on_done(Rank{1}, 9, 10);
  EXPECT_EQ(closed(), (std::vector{Row{.epoch = 0, .committed = 32, .late = 8}}));
}

TEST_F(LedgerTest, AJobThatEndsWithinAnEpochLeavesItOpen) {
  both(0, 8);
  sut_.finish(8);
  EXPECT_TRUE(closed().empty());
  EXPECT_EQ(open(), (std::vector{Row{.epoch = 0, .committed = 32}}));
}

TEST_F(LedgerTest, NobodyDoesMoreThanTheJobHas) {
  sut_.on_done(Rank{0}, 0, std::int64_t{1} << 60);
  sut_.on_used(Rank{0}, std::int64_t{1} << 60);
  EXPECT_EQ(open().size(), 3U);
  sut_.on_done(Rank{1}, -5, 2);
  sut_.on_done(Rank{7}, 0, 2);
  EXPECT_EQ(open().front().committed, 20);
}

Contents own(std::int32_t rank, std::int64_t through, std::int64_t from = 0) { return {{Rank{rank}, from, through}}; }

TEST_F(LedgerTest, WhatAnothersModelHasIsNotLostWithWhoseItIs) {
  both(0, 4, false);
  sut_.on_taken(Rank{0}, own(1, 3));
  sut_.on_left(Rank{1}, true);
  EXPECT_EQ(open(), (std::vector{Row{.epoch = 0, .committed = 14, .lost = 2}}));
  sut_.on_held(own(1, 4));
  EXPECT_EQ(open(), (std::vector{Row{.epoch = 0, .committed = 16}})) << "another node's model has it";
}

TEST_F(LedgerTest, ItsOwnModelIsNoOther) {
  both(0, 4, false);
  sut_.on_taken(Rank{1}, own(1, 4));
  sut_.on_left(Rank{1}, true);
  EXPECT_EQ(open(), (std::vector{Row{.epoch = 0, .committed = 8, .lost = 8}}));
}

TEST_F(LedgerTest, AModelHasWhatThoseThatItTookHad) {
  both(0, 4, false);
  sut_.on_taken(Rank{1}, {{Rank{0}, 0, 4}, {Rank{7}, 2, 9}});
  sut_.on_done(Rank{1}, 4, 5);
  EXPECT_EQ(sut_.contents(Rank{1}), (Contents{{Rank{0}, 0, 4}, {Rank{1}, 0, 5}, {Rank{7}, 2, 9}}));
  EXPECT_EQ(sut_.contents(Rank{1}, true), own(1, 5));
  EXPECT_EQ(sut_.model(Rank{1}), (Contents{{Rank{0}, 0, 4}, {Rank{1}, 0, 4}, {Rank{7}, 2, 9}})) << "not used yet";
  sut_.on_taken(Rank{1}, own(0, 6));
  EXPECT_EQ(sut_.contents(Rank{1}).front(), (Content{Rank{0}, 0, 4})) << "it was published before";
}

TEST_F(LedgerTest, TheLivesOfAWorkerAreHeldApart) {
  both(0, 4, false);
  sut_.on_left(Rank{1}, true);
  sut_.on_done(Rank{1}, 6, 8);
  sut_.on_used(Rank{1}, 8);
  EXPECT_EQ(sut_.contents(Rank{1}), own(1, 8, 6));
  sut_.on_held(own(1, 8, 6));
  EXPECT_EQ(open(), (std::vector{Row{.epoch = 0, .committed = 12, .lost = 12}})) << "what the first had is gone";
  sut_.on_held(own(1, 4));
  EXPECT_EQ(open(), (std::vector{Row{.epoch = 0, .committed = 20, .lost = 4}}));
}

TEST_F(LedgerTest, WhatWasLostWithAWorkerMayBeDoneByItsNextProcess) {
  both(0, 4);
  sut_.on_done(Rank{1}, 4, 6);
  sut_.on_left(Rank{1}, true);
  sut_.on_done(Rank{1}, 5, 7);
  sut_.on_used(Rank{1}, 7);
  sut_.on_held(own(1, 7, 5));
  EXPECT_EQ(open(), (std::vector{Row{.epoch = 0, .committed = 20, .lost = 2}}));
}

TEST_F(LedgerTest, AnEpochThatIsOverIsToldAgainWhenItChanges) {
  both(0, 12, false);
  EXPECT_EQ(closed(), (std::vector{Row{.epoch = 0, .committed = 40}}));
  sut_.on_held(own(1, 7));
  EXPECT_TRUE(closed().empty());
  sut_.on_left(Rank{1}, true);
  EXPECT_EQ(closed(), (std::vector{Row{.epoch = 0, .committed = 34, .lost = 6}}));
  sut_.on_held(own(1, 9));
  EXPECT_EQ(closed(), (std::vector{Row{.epoch = 0, .committed = 38, .lost = 2}}));
  sut_.on_held(own(1, 9));
  EXPECT_TRUE(closed().empty());
}

TEST_F(LedgerTest, WhatTheJobsModelDoesNotHaveIsLostInTheEnd) {
  both(0, 12);
  sut_.on_left(Rank{1}, true);
  EXPECT_EQ(closed(), (std::vector{Row{.epoch = 0, .committed = 40}}));
  sut_.on_job_has(own(1, 11), true);
  sut_.on_job_has(own(0, 12), true);
  sut_.on_job_has(own(1, 8), false);
  sut_.finish(12);
  EXPECT_EQ(closed(), (std::vector{Row{.epoch = 0, .committed = 36, .lost = 4}})) << "who had it has ended, too";
}

struct LongLedger : LedgerTest {
  LongLedger() : LedgerTest({.workers = 2, .samples = 43, .batch = 2, .updates = 300, .epoch_end = 10, .left = 43}) {}
};

TEST_F(LongLedger, WhatAllHaveIsForgotten) {
  for (std::int64_t body = 0; body < 200; ++body) {
    both(body, body + 1, false);
    sut_.on_taken(Rank{0}, own(1, body + 1));
    sut_.on_taken(Rank{1}, own(0, body + 1));
    (void)closed();
  }
  EXPECT_EQ(sut_.fates(Rank{1}).begin()->first, 160);
}

TEST_F(LongLedger, WhatNobodyElseHasIsKeptForAWhile) {
  for (std::int64_t body = 0; body < 300; ++body) {
    both(body, body + 1, false);
    (void)closed();
  }
  EXPECT_EQ(sut_.fates(Rank{1}).begin()->first, 0);
  sut_.on_left(Rank{1}, true);
  EXPECT_EQ(closed().size(), 30U);
}

struct AccumulatingLedger : LedgerTest {
  AccumulatingLedger()
      : LedgerTest({.workers = 2,
                    .samples = 43,
                    .batch = 2,
                    .updates = 30,
                    .epoch_end = 10,
                    .left = 43,
                    .forgets_late = false}) {}
};

TEST_F(AccumulatingLedger, WhatWasLateGoesWithTheNext) {
  sut_.on_done(Rank{0}, 0, 1);
  sut_.on_done(Rank{0}, 3, 4);
  sut_.on_used(Rank{0}, 4, true);
  EXPECT_EQ(open(), (std::vector{Row{.epoch = 0, .committed = 4, .skipped = 4}}));
}

TEST_F(LedgerTest, AGradientThatWasLateIsNotUsed) {
  sut_.on_done(Rank{0}, 0, 1);
  sut_.on_done(Rank{0}, 1, 2);
  sut_.on_used(Rank{0}, 2, true);
  EXPECT_EQ(open(), (std::vector{Row{.epoch = 0, .committed = 2, .late = 2}}));
}

TEST_F(LedgerTest, WhatIsInTheModelIsNotForgotten) {
  sut_.on_done(Rank{0}, 0, 1, true);
  sut_.on_done(Rank{0}, 1, 2);
  sut_.on_used(Rank{0}, 2);
  EXPECT_EQ(open(), (std::vector{Row{.epoch = 0, .committed = 4}}));
}

/// Updates of four mini-batches, which the first to finish ends.
struct AbandoningLedger : LedgerTest {
  AbandoningLedger()
      : LedgerTest({.workers = 2,
                    .bodies = 4,
                    .samples = 48,
                    .batch = 2,
                    .updates = 30,
                    .epoch_end = 12,
                    .left = 48,
                    .abandons = true}) {}
};

TEST_F(AbandoningLedger, WhatIsLeftOfAnUpdateIsAbandoned) {
  both(0, 4);
  sut_.on_done(Rank{1}, 4, 5);
  sut_.on_used(Rank{1}, 5, true);
  sut_.on_done(Rank{0}, 4, 8);
  sut_.on_used(Rank{0}, 8, true);
  sut_.on_done(Rank{1}, 8, 12);
  sut_.on_used(Rank{1}, 12, true);
  sut_.on_done(Rank{0}, 8, 12);
  sut_.on_used(Rank{0}, 12, true);
  EXPECT_EQ(closed(), (std::vector{Row{.epoch = 0, .committed = 42, .abandoned = 6}}));
}

TEST_F(AbandoningLedger, WhatComesAfterTheUpdateWasEndedIsAbandonedToo) {
  sut_.on_done(Rank{1}, 0, 3);
  sut_.on_used(Rank{1}, 2, true);
  sut_.on_done(Rank{1}, 4, 8);
  EXPECT_EQ(open(), (std::vector{Row{.epoch = 0, .committed = 4, .abandoned = 4, .open = 8}}));
}

TEST_F(AbandoningLedger, WholeUpdatesThatWereMissedAreSkipped) {
  sut_.on_done(Rank{1}, 8, 12);
  EXPECT_EQ(open(), (std::vector{Row{.epoch = 0, .abandoned = 8, .skipped = 8, .open = 8}}));
}

struct LedgerWithoutData : LedgerTest {
  LedgerWithoutData() : LedgerTest({.workers = 2, .batch = 3, .updates = 50000}) {}
};

TEST_F(LedgerWithoutData, AllIsOneEpoch) {
  for (std::int64_t body = 0; body < 40000; body += 2) {
    both(body, body + 1);
    for (const int rank : {0, 1}) sut_.on_held(own(rank, body + 1));
    EXPECT_TRUE(closed().empty());
  }
  EXPECT_EQ(open(), (std::vector{Row{.epoch = 0, .committed = 120000, .skipped = 119994}}));
  EXPECT_LT(sut_.fates(Rank{0}).size(), 5 * 4096U + 10) << "what is over is put together";
}

TEST_F(LedgerTest, ARowSaysHowManySamplesTheEpochHas) {
  both(0, 12);
  const auto over = sut_.take_closed().at(0), begun = sut_.open().at(0);
  EXPECT_EQ(over.samples, 43);
  EXPECT_EQ(over.tail, 3);
  EXPECT_EQ(begun.samples, 43);
  EXPECT_EQ(begun.tail, 3);
}

/// It goes on with its body 14, within epoch 3: up to this body, with so many samples that are left.
struct LedgerWithin : LedgerTest {
  LedgerWithin(std::int64_t epoch_end, std::int64_t left)
      : LedgerTest({.workers = 2,
                    .samples = 43,
                    .batch = 2,
                    .first = 14,
                    .updates = 40,
                    .epoch = 3,
                    .epoch_end = epoch_end,
                    .left = left}) {}
};

struct ResumedLedger : LedgerWithin {
  ResumedLedger() : LedgerWithin(19, 21) {}
};

TEST_F(ResumedLedger, CountsFromWhereItGoesOn) {
  both(14, 19);
  const auto row = sut_.take_closed().at(0);
  EXPECT_EQ(row, (Row{.epoch = 3, .committed = 20, .tail = 1, .samples = 21}));
  both(19, 29);
  EXPECT_EQ(closed(), (std::vector{Row{.epoch = 4, .committed = 40}}));
}

/// Nothing is left of it that could be dealt.
struct LedgerAtAnEnd : LedgerWithin {
  LedgerAtAnEnd() : LedgerWithin(14, 3) {}
};

TEST_F(LedgerAtAnEnd, BeginsWithTheNextEpoch) {
  both(14, 24);
  EXPECT_EQ(closed(), (std::vector{Row{.epoch = 4, .committed = 40}}));
}

}  // namespace
}  // namespace paceline::scheduler
