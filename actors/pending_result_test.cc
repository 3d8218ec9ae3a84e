#include "actors/pending_result.h"

#include <gtest/gtest.h>

namespace paceline::actors {
namespace {

TEST(PendingResultTest, WhatIsHeldGoesBeforeTheResultShows) {
  struct Held {
    Held(const PendingResult& of, bool& is_gone) : result(of), gone(is_gone) {}
    const PendingResult& result;
    bool& gone;
    ~Held() {
      gone = true;
      EXPECT_FALSE(result.ready());
    }
  };
  bool gone = false;
  PendingResult result{TaskId{1}};
  result.hold(std::make_shared<Held>(result, gone));
  EXPECT_FALSE(gone);
  result.complete(Bytes{});
  EXPECT_TRUE(gone);
  EXPECT_TRUE(result.ready());
}

TEST(PendingResultTest, NothingIsHeldWhereTheResultIsThere) {
  const auto held = std::make_shared<int>(1);
  PendingResult result{TaskId{1}};
  result.complete(Bytes{});
  result.hold(held);
  EXPECT_EQ(held.use_count(), 1);
}

}  // namespace
}  // namespace paceline::actors
