#include "algorithms/job/sample_ledger.h"

#include <gtest/gtest.h>

#include "runtime/base/json.h"

namespace paceline::job {
namespace {

using nlohmann::json;

/// Of a node: 103 samples in all, of which 3 are dealt to nobody.
json said(int node, json epochs) {
  for (auto& epoch : epochs) epoch.update({{"samples", 103}, {"tail", 3}});
  return {{"node", node}, {"epochs", std::move(epochs)}};
}

std::int64_t sum_of(const json& row) {
  std::int64_t sum = 0;
  for (const char* const what : {"committed", "abandoned", "skipped", "late", "lost", "tail"})
    sum += row.at(what).get<std::int64_t>();
  return sum;
}

class SampleLedgerTest : public testing::Test {
 protected:
  void over(json ledger) {
    ledger["event"] = "ledger";
    sut_.on_event(ledger);
  }
  void open(const json& ledger) { sut_.on_event({{"event", "progress"}, {"ledger", ledger}}); }

  SampleLedger sut_;
};

TEST_F(SampleLedgerTest, AddsUpWhatNodesSay) {
  over(said(0, {{{"epoch", 0}, {"committed", 50}}}));
  over(said(1, {{{"epoch", 0}, {"committed", 40}, {"late", 4}, {"skipped", 6}, {"twice", 2}}}));
  const auto row = sut_.rows().at(0);
  EXPECT_EQ(row.at("committed"), 90);
  EXPECT_EQ(row.at("twice"), 2);
  EXPECT_EQ(row.at("samples"), 103);
  EXPECT_EQ(sum_of(row), 103);
}

TEST_F(SampleLedgerTest, AnEpochThatIsNotOverIsAsItWasSaidLast) {
  open(said(0, {{{"epoch", 0}, {"committed", 10}}}));
  open(said(0, {{{"epoch", 0}, {"committed", 20}}, {{"epoch", 1}, {"committed", 4}}}));
  over(said(1, {{{"epoch", 0}, {"committed", 50}}}));
  EXPECT_EQ(sut_.rows().at(0).at("committed"), 70);
  EXPECT_EQ(sut_.rows().at(1).at("committed"), 4);
  over(said(0, {{{"epoch", 0}, {"committed", 50}}}));
  open(said(0, {{{"epoch", 1}, {"committed", 8}}}));
  EXPECT_EQ(sut_.rows().at(0).at("committed"), 100);
  EXPECT_EQ(sut_.rows().at(1).at("committed"), 8);
}

TEST_F(SampleLedgerTest, OfAnEpochEachLegHasTheRestOfTheOneBefore) {
  over(said(0, {{{"epoch", 0}, {"committed", 30}}}));
  over(said(1, {{{"epoch", 0}, {"committed", 20}, {"skipped", 4}}}));
  json next{{"node", 0}, {"leg", 1}, {"epochs", {{{"epoch", 0}, {"committed", 20}, {"samples", 49}, {"tail", 5}}}}};
  open(next);
  EXPECT_EQ(sut_.rows().at(0).at("committed"), 70);
  next["epochs"][0]["committed"] = 24;
  over(next);
  next["node"] = 1;
  next["epochs"][0]["committed"] = 20;
  over(next);
  const auto row = sut_.rows().at(0);
  EXPECT_EQ(row.at("committed"), 94);
  EXPECT_EQ(row.at("samples"), 103);
  EXPECT_EQ(row.at("tail"), 5) << "of the last deal";
  EXPECT_EQ(sum_of(row), 103);
}

TEST_F(SampleLedgerTest, WhatIsToldAgainCountsOnce) {
  over(said(0, {{{"epoch", 0}, {"committed", 50}}}));
  over(said(0, {{{"epoch", 0}, {"committed", 50}}}));
  EXPECT_EQ(sut_.rows().at(0).at("committed"), 50);
}

TEST_F(SampleLedgerTest, WhatIsToldOtherwiseHolds) {
  over(said(0, {{{"epoch", 0}, {"committed", 50}}}));
  over(said(0, {{{"epoch", 0}, {"committed", 44}, {"lost", 6}}}));
  EXPECT_EQ(sut_.rows().at(0).at("committed"), 44);
  EXPECT_EQ(sut_.rows().at(0).at("lost"), 6);
}

TEST_F(SampleLedgerTest, WhatALostNodeHadNotSaidIsLost) {
  open(said(1, {{{"epoch", 0}, {"committed", 30}}}));
  sut_.on_event({{"event", "node_lost"}, {"node", 1}});
  open(said(0, {{{"epoch", 0}, {"committed", 40}}}));
  EXPECT_EQ(sut_.rows().at(0).at("lost"), 0) << "it is not over";
  over(said(0, {{{"epoch", 0}, {"committed", 50}}}));
  over(said(0, {{{"epoch", 1}, {"committed", 50}}}));
  for (const auto& row : sut_.rows()) EXPECT_EQ(sum_of(row), 103) << row;
  EXPECT_EQ(sut_.rows().at(0).at("lost"), 20);
  EXPECT_EQ(sut_.rows().at(1).at("lost"), 50);
}

TEST_F(SampleLedgerTest, OneThatIsBackIsWaitedForFromItsLegOn) {
  open(said(1, {{{"epoch", 0}, {"committed", 30}}}));
  sut_.on_event({{"event", "node_lost"}, {"node", 1}});
  sut_.on_event({{"event", "node_joined"}, {"node", 1}, {"leg", 1}});
  over(said(0, {{{"epoch", 0}, {"committed", 50}}}));
  EXPECT_EQ(sut_.rows().at(0).at("lost"), 20) << "that was over before";
  auto later = said(0, {{{"epoch", 1}, {"committed", 50}}});
  later["leg"] = 1;
  over(later);
  EXPECT_EQ(sut_.rows().at(1).at("lost"), 0) << "it may have done some of it";
  later = said(1, {{{"epoch", 1}, {"committed", 40}}});
  later["leg"] = 1;
  over(later);
  EXPECT_EQ(sut_.rows().at(1).at("lost"), 10);
}

TEST_F(SampleLedgerTest, WithoutADataSetThereIsOneRow) {
  open({{"node", 0}, {"epochs", {{{"epoch", 0}, {"committed", 12}, {"late", 3}}}}});
  const auto rows = sut_.rows();
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows.at(0).at("samples"), 15);
  EXPECT_EQ(sum_of(rows.at(0)), 15);
}

TEST_F(SampleLedgerTest, NothingSaidIsNoRow) { EXPECT_TRUE(sut_.rows().empty()); }

}  // namespace
}  // namespace paceline::job
