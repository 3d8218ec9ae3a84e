#include "algorithms/cluster/training/returns.h"

#include <gmock/gmock.h>

namespace paceline::cluster {
namespace {

using std::chrono::seconds;
using testing::IsEmpty;
using testing::SizeIs;

constexpr Returns::Gone kEnded{Instant{seconds(10)}, 7};

TEST(ReturnsTest, AWorkerIsOnItsWayFromItsEndToItsArrival) {
  Returns sut;
  EXPECT_FALSE(sut.has(Rank{1}));
  sut.begin(Rank{1}, kEnded);
  EXPECT_TRUE(sut.has(Rank{1}));
  EXPECT_THAT(sut.waiting(), IsEmpty()) << "its next process has not shared its model";
  sut.on_share(Rank{1}, {.worker = WorkerId{7}, .request = 3});
  ASSERT_THAT(sut.waiting(), SizeIs(1));
  EXPECT_TRUE(sut.has(WorkerId{7}));
  sut.on_window(Rank{1});
  EXPECT_THAT(sut.waiting(), IsEmpty());
  EXPECT_EQ(sut.end(Rank{1}), kEnded);
  EXPECT_EQ(sut.end(Rank{1}), std::nullopt) << "it is back";
}

TEST(ReturnsTest, OneWhoseNextProcessEndsTooIsGoneSinceItsFirstEnd) {
  Returns sut;
  sut.begin(Rank{1}, kEnded);
  sut.on_share(Rank{1}, {.worker = WorkerId{7}});
  sut.withdraw(WorkerId{7});
  EXPECT_THAT(sut.waiting(), IsEmpty());
  sut.on_share(Rank{1}, {.worker = WorkerId{8}});
  sut.begin(Rank{1}, {Instant{seconds(15)}, 9});
  EXPECT_THAT(sut.waiting(), IsEmpty());
  EXPECT_EQ(sut.end(Rank{1}), kEnded);
}

}  // namespace
}  // namespace paceline::cluster
