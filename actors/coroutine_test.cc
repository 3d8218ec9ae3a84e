#include "actors/coroutine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "actors/test_support/loop.h"

namespace paceline {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

using test::Loop;

struct Source {
  actors::PendingResultPtr pending = std::make_shared<actors::PendingResult>(TaskId{1});
  Future<int> future() const { return Future<int>(pending); }
  void give(int value) const { pending->complete(actors::to_bytes(value)); }
};

Async<int> sum(Future<int> a, Future<int> b) { co_return co_await a + co_await b; }
Async<int> twice(Future<int> a) { co_return 2 * co_await sum(a, a); }

TEST(Coroutine, WaitsForFuturesAndThenGoesOnInTheLoop) {
  Loop loop;
  Source a, b;
  auto sut = sum(a.future(), b.future());
  a.give(1);
  EXPECT_FALSE(sut.done()) << "it goes on in its own thread's turn, not in that of whoever brought the result";
  loop.run();
  EXPECT_FALSE(sut.done());
  b.give(2);
  loop.run();
  ASSERT_TRUE(sut.done());
  EXPECT_EQ(sut.get(), 3);
}

TEST(Coroutine, DoesNotSuspendForWhatIsThere) {
  Loop loop;
  Source a;
  a.give(4);
  auto sut = twice(a.future());
  ASSERT_TRUE(sut.done());
  EXPECT_EQ(sut.get(), 16);
}

TEST(Coroutine, WaitsForOthersOfItsKind) {
  Loop loop;
  Source a;
  auto sut = twice(a.future());
  a.give(5);
  loop.run();
  ASSERT_TRUE(sut.done());
  EXPECT_EQ(sut.get(), 20);
}

Async<void> note(std::vector<std::string>& notes, std::string what, Future<int> until) {
  notes.push_back("begins " + what);
  co_await until;
  notes.push_back("ends " + what);
}

TEST(Coroutine, SeveralOverlap) {
  Loop loop;
  Source a, b;
  std::vector<std::string> notes;
  auto first = note(notes, "first", a.future());
  auto second = note(notes, "second", b.future());
  b.give(0);
  loop.run();
  a.give(0);
  loop.run();
  EXPECT_THAT(notes, ElementsAre("begins first", "begins second", "ends second", "ends first"));
}

Async<int> fails(Future<int> until) {
  co_await until;
  throw std::out_of_range("too far");
}
Async<std::string> catches(Future<int> until) {
  try {
    co_return std::to_string(co_await fails(until));
  } catch (const std::out_of_range& error) {
    co_return error.what();
  }
}

TEST(Coroutine, WhatIsThrownComesToWhoWaits) {
  Loop loop;
  Source a;
  auto sut = fails(a.future());
  auto caught = catches(a.future());
  a.give(0);
  loop.run();
  EXPECT_THROW((void)sut.get(), std::out_of_range);
  EXPECT_EQ(caught.get(), "too far");
}

TEST(Coroutine, AFailedFutureThrowsItsError) {
  Loop loop;
  Source a;
  auto sut = sum(a.future(), a.future());
  a.pending->complete(fail(ErrorKind::disconnected, "its node is gone"));
  loop.run();
  try {
    (void)sut.get();
    FAIL() << "nothing was thrown";
  } catch (const TaskError& error) {
    EXPECT_EQ(error.kind(), ErrorKind::disconnected);
    EXPECT_STREQ(error.what(), "its node is gone");
  }
}

TEST(Coroutine, AnEmptyFutureIsAnError) {
  Loop loop;
  auto sut = sum({}, {});
  EXPECT_THROW((void)sut.get(), TaskError);
}

std::string error_of(Async<int>& sut) {
  try {
    (void)sut.get();
  } catch (const TaskError& error) {
    return error.what();
  }
  return "";
}

TEST(Coroutine, AResultCanBeTakenOnceAndOnlyWhenItIsThere) {
  Loop loop;
  Source a;
  auto sut = sum(a.future(), a.future());
  EXPECT_THAT(error_of(sut), HasSubstr("not done"));
  a.give(1);
  loop.run();
  EXPECT_EQ(sut.get(), 2);
  EXPECT_THAT(error_of(sut), HasSubstr("twice"));
}

TEST(Coroutine, WhatIsDroppedWhileItWaitsGoesOnNoMore) {
  Loop loop;
  Source a;
  std::vector<std::string> notes;
  {
    auto before = note(notes, "one whose future comes later", a.future());
    auto after = note(notes, "one that has its turn later", a.future());
  }
  a.give(1);
  loop.run();
  {
    auto sleeper = []() -> Async<void> { co_await sleep_for(1ms); }();
    EXPECT_FALSE(sleeper.done());
  }
  loop.run();
  EXPECT_THAT(notes, ElementsAre("begins one whose future comes later", "begins one that has its turn later"));
}

TEST(Coroutine, WhereNothingElseCouldRunItBlocks) {
  Source a;
  a.give(3);
  EXPECT_EQ(twice(a.future()).get(), 12);
  EXPECT_TRUE([]() -> Async<void> { co_await sleep_for(1ms); }().done());
}

TEST(Coroutine, AMillionInARowTakeNoStack) {
  Loop loop;
  auto sut = [&]() -> Async<int> {
    int sum = 0;
    for (int i = 0; i < 1'000'000; ++i) {
      if (i % 1000 == 0) co_await sleep_for(0ms);
      sum += co_await []() -> Async<int> { co_return 1; }();
    }
    co_return sum;
  }();
  loop.run();
  EXPECT_EQ(sut.get(), 1'000'000);
}

struct Text {
  Async<std::string> joined(const std::string& a, std::string b, Future<int> until) const {
    co_await until;
    co_return a + b;
  }
};

TEST(Coroutine, ACallKeepsItsArgumentsForAsLongAsItRuns) {
  Loop loop;
  Source a;
  Text text;
  auto values = std::make_shared<std::tuple<std::string, std::string>>("one that is long enough for the heap, ", "two");
  actors::AsyncCall<std::string> sut(
      values, [&](auto& kept) { return text.joined(std::get<0>(kept), std::move(std::get<1>(kept)), a.future()); });
  values.reset();
  int told = 0;
  sut.on_done([&] { ++told; });
  a.give(0);
  EXPECT_EQ(told, 0);
  loop.run();
  EXPECT_EQ(told, 1);
  ASSERT_TRUE(sut.done());
  EXPECT_EQ(actors::from_bytes<std::string>(sut.result(), "a text").value(),
            "one that is long enough for the heap, two");
}

}  // namespace
}  // namespace paceline
