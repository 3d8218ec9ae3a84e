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

TEST(OwnersTurn, IsOneAtATimeAndTheOwnersFirst) {
  OwnersTurn sut;
  auto own = sut.take();
  EXPECT_FALSE(sut.borrow().owns_lock());
  own.unlock();
  auto guest = sut.borrow();
  ASSERT_TRUE(guest.owns_lock());
  std::thread owner([&] { (void)sut.take(); });
  while (!sut.is_wanted()) std::this_thread::yield();
  guest.unlock();
  owner.join();
  EXPECT_FALSE(sut.is_wanted());
  EXPECT_TRUE(sut.borrow().owns_lock());
}

}  // namespace
}  // namespace paceline::actors
