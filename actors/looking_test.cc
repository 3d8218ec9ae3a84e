#include "actors/looking.h"

#include <gtest/gtest.h>

#include <thread>

namespace paceline::actors {
namespace {

TEST(Looking, PaysWhileSomethingComes) {
  Looking sut;
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(sut.pays());
    sut.on_looked(true);
  }
}

TEST(Looking, IsTriedLessOftenTheLessItPays) {
  Looking sut;
  int looks = 0;
  for (int waits = 0; waits < 1000; ++waits) {
    if (!sut.pays()) continue;
    ++looks;
    sut.on_looked(false);
  }
  EXPECT_LT(looks, 25);
  EXPECT_GT(looks, 15) << "it is tried again now and then: others may have gone, and there is a core";
}

TEST(Looking, PaysAgainAsSoonAsSomethingHasCome) {
  Looking sut;
  for (int i = 0; i < 20; ++i) sut.on_looked(false);
  while (!sut.pays()) {
  }
  sut.on_looked(true);
  EXPECT_TRUE(sut.pays());
}

TEST(Steadiness, IsOfWaitsThatCameSoonOneAfterTheOther) {
  Steadiness sut;
  Instant now{std::chrono::seconds(1)};
  const auto wait = [&](bool came, Duration before) {
    const Instant began = now + before;
    now = began + std::chrono::microseconds(10);
    sut.on_waited(came, began, now);
    return static_cast<bool>(sut);
  };
  const auto soon = Steadiness::kSoon;
  for (std::uint32_t i = 0; i < Steadiness::kEnough; ++i) EXPECT_FALSE(wait(true, soon)) << "the first has none before";
  EXPECT_TRUE(wait(true, soon));
  EXPECT_FALSE(wait(true, soon + Duration(1))) << "something else was done in between";
  for (std::uint32_t i = 0; i < Steadiness::kEnough; ++i) (void)wait(true, soon);
  EXPECT_TRUE(sut);
  EXPECT_FALSE(wait(false, soon)) << "it did not come";
}

TEST(OwnersTurn, IsNotBorrowedTwiceByAThread) {
  OwnersTurn sut;
  auto turn = sut.borrow();
  ASSERT_TRUE(turn);
  EXPECT_FALSE(sut.borrow()) << "what is done in it may wait for something, too";
  turn.end();
  EXPECT_TRUE(sut.borrow());
}

TEST(OwnersTurn, IsTheOwnersBeforeAGuestHasItAgain) {
  OwnersTurn sut;
  auto guest = sut.borrow();
  std::atomic<bool> woken = false, had = false;
  std::thread owner([&] {
    const auto own = sut.take([&] { woken = true; });
    had = true;
  });
  while (!woken) std::this_thread::yield();
  EXPECT_TRUE(sut.is_wanted()) << "before the guest is woken";
  guest.end();
  guest = sut.borrow_after_owner();
  EXPECT_TRUE(had || !guest);
  owner.join();
  EXPECT_TRUE(guest || sut.borrow());
}

TEST(OwnersTurn, IsOneAtATimeAndTheOwnersFirst) {
  OwnersTurn sut;
  auto own = sut.take([] {});
  EXPECT_FALSE(sut.borrow());
  own.end();
  auto guest = sut.borrow();
  ASSERT_TRUE(guest);
  std::thread owner([&] { (void)sut.take([] {}); });
  while (!sut.is_wanted()) std::this_thread::yield();
  guest.end();
  owner.join();
  EXPECT_FALSE(sut.is_wanted());
  EXPECT_TRUE(sut.borrow());
}

}  // namespace
}  // namespace paceline::actors
