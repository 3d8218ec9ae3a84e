#include "actors/actor_pool.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

namespace paceline::actors {
namespace {

class PoolTurnsTest : public testing::Test {
 protected:
  std::size_t give() {
    const std::size_t actor = sut.next();
    calls.emplace_back(std::make_shared<PendingResult>(TaskId{calls.size() + 1}, ActorId{actor + 1}));
    sut.add(actor, calls.back());
    return actor;
  }
  void end(std::size_t call) { calls.at(call)->complete(Bytes{}); }
  void die(std::size_t call) { calls.at(call)->complete(fail(ErrorKind::disconnected, "the actor is dead")); }

  PoolTurns sut{3, 1};
  std::vector<PendingResultPtr> calls;
};

TEST_F(PoolTurnsTest, EachHasOneBeforeAnyHasTwoAndTheOneThatIsFreeIsNext) {
  EXPECT_EQ(give(), 0u);
  EXPECT_EQ(give(), 1u);
  EXPECT_EQ(give(), 2u);
  end(1);
  EXPECT_EQ(give(), 1u);
  end(0);
  end(3);
  EXPECT_EQ(give(), 0u) << "its turn was longer ago";
}

TEST_F(PoolTurnsTest, WaitsUntilOneIsFree) {
  for (int i = 0; i < 3; ++i) give();
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    end(2);
  });
  EXPECT_EQ(sut.next(), 2u);
  later.join();
}

// A dead actor answers at once, and would have all that there is to do.
TEST_F(PoolTurnsTest, OneThatHasDiedRestsWhileThereAreOthers) {
  for (int i = 0; i < 3; ++i) give();
  die(1);
  end(0);
  for (std::size_t i = 3; i < 10; ++i) {
    EXPECT_EQ(give(), 0u);
    end(i);
  }
  end(2);
  for (std::size_t i = 10; i < 12; ++i) {
    give();
    die(i);
  }
  EXPECT_LT(give(), 3u) << "all have died: any of them, so that the caller hears of it";
}

TEST(PoolTurns, OfNobodyThereIsNone) {
  EXPECT_THROW(PoolTurns(0, 1), TaskError);
  EXPECT_THROW(PoolTurns(1, 0), TaskError);
}

}  // namespace
}  // namespace paceline::actors
