#include "actors/stream/incoming_stream.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <vector>

#include "actors/future.h"
#include "actors/serialise.h"

namespace paceline::actors {
namespace {

class IncomingStreamTest : public testing::Test {
 protected:
  IncomingStreamTest() { begin(4); }
  void begin(std::uint32_t ahead) {
    sut = std::make_shared<IncomingStream>(ahead);
    sut->begin(std::make_shared<PendingResult>(TaskId{5}), [this] { ++dropped; });
  }
  void item(std::uint64_t number) { sut->on_item(number, to_bytes(std::optional<int>(static_cast<int>(number) * 10))); }
  void end(std::uint64_t count) { sut->on_end(to_bytes(count)); }
  using Asked = Future<std::optional<int>>;
  Asked ask() { return Asked(sut->next()); }

  std::shared_ptr<IncomingStream> sut;
  int dropped = 0;
};

TEST_F(IncomingStreamTest, ValuesAreHandedOutInOrderWhicheverWayTheyCame) {
  const auto first = ask();
  item(2);
  EXPECT_FALSE(first.ready());
  item(1);
  EXPECT_EQ(first.get(), 10);
  EXPECT_EQ(ask().get(), 20);
  const auto third = ask();
  end(3);
  EXPECT_FALSE(third.ready()) << "the end may be quicker than a value";
  item(3);
  EXPECT_EQ(third.get(), 30);
  EXPECT_EQ(ask().get(), std::nullopt);
  EXPECT_EQ(ask().get(), std::nullopt);
}

TEST_F(IncomingStreamTest, WhatIsRunAgainGivesNothingTwice) {
  item(1);
  item(2);
  EXPECT_EQ(ask().get(), 10);
  for (std::uint64_t number = 1; number <= 3; ++number) item(number);
  EXPECT_EQ(ask().get(), 20);
  EXPECT_EQ(ask().get(), 30);
}

TEST_F(IncomingStreamTest, AnErrorComesBehindTheValuesThatWereThere) {
  item(1);
  item(3);
  sut->on_end(fail(ErrorKind::disconnected, "the worker was killed"));
  item(2);
  EXPECT_EQ(ask().get(), 10);
  EXPECT_THROW((void)ask().get(), TaskError);
  EXPECT_THROW((void)ask().get(), TaskError);
}

TEST_F(IncomingStreamTest, ALengthThatCannotBeReadIsAnError) {
  sut->on_end(Bytes{std::byte{1}});
  EXPECT_THROW((void)ask().get(), TaskError);
}

TEST_F(IncomingStreamTest, WhatWasNotWaitedForComesNext) {
  const auto first = ask();
  sut->put_back(first.pending());
  item(1);
  EXPECT_EQ(ask().get(), 10);
  item(2);
  EXPECT_EQ(ask().get(), 20);
}

TEST_F(IncomingStreamTest, AWordIsSentEveryHalfOfWhatItMayBeAhead) {
  EXPECT_FALSE(sut->word());
  ask();
  EXPECT_FALSE(sut->word());
  ask();
  EXPECT_EQ(sut->word(), 2u);
  EXPECT_FALSE(sut->word());
  item(1);  // Begins: what gives the values knows of no word, or is another one now.
  EXPECT_EQ(sut->word(), 2u);
  item(2);
  EXPECT_FALSE(sut->word());
  end(2);
  ask();
  ask();
  EXPECT_FALSE(sut->word()) << "nobody is there to hear it";
}

TEST_F(IncomingStreamTest, LargeValuesAreToldSooner) {
  begin(1000);
  ask();
  ask();
  sut->on_item(1, Bytes(kStreamBytesMax / 4));
  EXPECT_EQ(sut->word(), 2u);
  EXPECT_FALSE(sut->word());
}

TEST_F(IncomingStreamTest, WhoeverAsksForValuesHearsThatItWasDropped) {
  const auto asked = ask();
  sut.reset();
  EXPECT_EQ(dropped, 1);
  EXPECT_THROW((void)asked.get(), TaskError);
}

// What gives the values, which may die and begin anew, a reader, and two ways that overtake each other.
TEST_F(IncomingStreamTest, RandomLives) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const std::uint32_t ahead = 1 + random() % 6;
    const std::uint64_t length = random() % 40;
    begin(ahead);
    std::uint64_t given = 0, wanted = 0;
    int deaths = 3;
    std::vector<std::uint64_t> on_the_way[2];
    std::vector<Asked> asked;
    for (int steps = 0; steps < 100'000 && (asked.size() <= length || !asked.back().ready()); ++steps) {
      switch (random() % 5) {
        case 0:
          if (asked.size() <= length) asked.push_back(ask());
          break;
        case 1:
          if (given < length && given < wanted + ahead) on_the_way[random() % 2].push_back(++given);
          if (given == length && on_the_way[0].empty() && on_the_way[1].empty()) end(length);
          break;
        case 2:
        case 3: {
          auto& way = on_the_way[random() % 2];
          if (way.empty()) break;
          item(way.front());
          way.erase(way.begin());
          break;
        }
        default:
          if (random() % 50 != 0 || deaths == 0) break;
          --deaths;
          given = wanted = 0;
          for (auto& way : on_the_way) way.clear();
      }
      if (const auto word = sut->word()) wanted = std::max(wanted, *word);
    }
    ASSERT_EQ(asked.size(), length + 1);
    for (std::uint64_t i = 0; i < length; ++i) ASSERT_EQ(asked[i].get(), static_cast<int>(i + 1) * 10);
    ASSERT_EQ(asked.back().get(), std::nullopt);
  }
}

}  // namespace
}  // namespace paceline::actors
