#include "actors/queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "actors/test_support/loop.h"

namespace paceline {
namespace {

using namespace std::chrono_literals;
using Numbers = actors::QueueActor<int>;
using Patience = Numbers::Patience;

class QueueTest : public testing::Test {
 protected:
  test::Loop loop;
};

TEST_F(QueueTest, ValuesComeInTheirOrder) {
  Numbers sut(0);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(sut.put(i, {}).get());
  EXPECT_EQ(sut.size(), 3u);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(sut.get(Patience{}).get(), i);
}

TEST_F(QueueTest, GettersAreServedInTurnAndNoLaterOneGoesBefore) {
  Numbers sut(0);
  auto first = sut.get(Patience{}), second = sut.get(Patience{});
  EXPECT_TRUE(sut.put(1, {}).get());
  auto third = sut.get(Patience{});  // Before the first one goes on.
  EXPECT_TRUE(sut.put(2, {}).get());
  EXPECT_TRUE(sut.put(3, {}).get());
  loop.run();
  EXPECT_EQ(first.get(), 1);
  EXPECT_EQ(second.get(), 2);
  EXPECT_EQ(third.get(), 3);
}

TEST_F(QueueTest, AFullOneKeepsPuttersWaitingUntilThereIsRoom) {
  Numbers sut(1);
  EXPECT_TRUE(sut.put(1, {}).get());
  auto waits = sut.put(2, {});
  loop.run();
  EXPECT_FALSE(waits.done());
  EXPECT_EQ(sut.get(Patience{}).get(), 1);
  loop.run();
  ASSERT_TRUE(waits.done());
  EXPECT_TRUE(waits.get());
  EXPECT_EQ(sut.get(Patience{}).get(), 2);
}

TEST_F(QueueTest, WhoHasWaitedLongEnoughGoesWithoutAValueAndNoneIsLost) {
  Numbers sut(1);
  EXPECT_FALSE(sut.get(0ms).get());
  auto gets = sut.get(1ms);
  loop.run();  // It is over: the loop's alarms ring at once.
  EXPECT_FALSE(gets.get());
  EXPECT_TRUE(sut.put(1, {}).get());
  EXPECT_FALSE(sut.put(2, 0ms).get());
  auto puts = sut.put(3, 1ms);
  loop.run();
  EXPECT_FALSE(puts.get());
  EXPECT_EQ(sut.size(), 1u);
  EXPECT_EQ(sut.get(0ms).get(), 1);
  EXPECT_FALSE(sut.get(0ms).get());
}

TEST_F(QueueTest, AClosedOneGivesWhatItHasAndThenNothing) {
  Numbers sut(1);
  EXPECT_TRUE(sut.put(1, {}).get());
  auto puts = sut.put(2, {});
  sut.close();
  loop.run();
  EXPECT_THROW((void)puts.get(), TaskError);
  EXPECT_THROW((void)sut.put(3, {}).get(), TaskError);
  EXPECT_EQ(sut.get(Patience{}).get(), 1);
  EXPECT_FALSE(sut.get(Patience{}).get());
}

TEST_F(QueueTest, ClosingWakesWhoWaitsForAValue) {
  Numbers sut(0);
  auto gets = sut.get(Patience{});
  sut.close();
  loop.run();
  EXPECT_FALSE(gets.get());
}

// Whatever the order of putters, getters, alarms and turns: each value that was put comes out once, in order.
TEST_F(QueueTest, RandomLives) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    Numbers sut(random() % 4);
    std::list<std::pair<int, Async<bool>>> puts;
    std::list<Async<std::optional<int>>> gets;
    std::vector<int> in, out;
    int next = 0;
    const auto settle = [&] {
      for (auto put = puts.begin(); put != puts.end();) {
        if (!put->second.done()) {
          ++put;
          continue;
        }
        if (put->second.get()) in.push_back(put->first);
        put = puts.erase(put);
      }
      for (auto get = gets.begin(); get != gets.end();) {
        if (!get->done()) {
          ++get;
          continue;
        }
        if (const auto value = get->get()) out.push_back(*value);
        get = gets.erase(get);
      }
    };
    for (int step = 0; step < 60; ++step) {
      const Patience patience = random() % 3 == 0 ? Patience(1ms) : Patience();
      switch (random() % 3) {
        case 0: puts.emplace_back(next, sut.put(next, patience)), ++next; break;
        case 1: gets.push_back(sut.get(patience)); break;
        default: loop.run(); settle();
      }
    }
    sut.close();
    loop.run();
    for (auto put = puts.begin(); put != puts.end();) {
      try {
        if (put->second.get()) in.push_back(put->first);
      } catch (const TaskError&) {  // It was closed before there was room.
      }
      put = puts.erase(put);
    }
    settle();
    for (auto value = sut.get(Patience{}).get(); value; value = sut.get(Patience{}).get()) out.push_back(*value);
    EXPECT_TRUE(gets.empty());
    std::sort(in.begin(), in.end());
    auto sorted = out;
    std::sort(sorted.begin(), sorted.end());
    EXPECT_EQ(in, sorted) << "seed " << seed;
  }
}

}  // namespace
}  // namespace paceline
