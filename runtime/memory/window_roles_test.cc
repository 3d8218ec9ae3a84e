#include "runtime/memory/window_roles.h"

#include <gtest/gtest.h>

namespace paceline::memory {
namespace {

constexpr std::int32_t kNobody = WindowRoles::kNone;

TEST(WindowRolesTest, PackingKeepsEveryRole) {
  const WindowRoles roles{.writing = 3, .published = kNobody, .sealed = 0, .in_progress = 13, .latest = 7};
  EXPECT_EQ(WindowRoles::unpack(roles.pack()), roles);
}

TEST(WindowRolesTest, AWordWithABufferInTwoRolesIsNotValid) {
  EXPECT_FALSE(WindowRoles::valid(WindowRoles{.writing = 1, .sealed = 1}.pack(), 4));
  EXPECT_TRUE(WindowRoles::valid(WindowRoles{.writing = 1, .sealed = 2}.pack(), 4));
}

TEST(WindowRolesTest, AWordWithABufferThatTheWindowDoesNotHaveIsNotValid) {
  EXPECT_FALSE(WindowRoles::valid(WindowRoles{.writing = 4}.pack(), 4));
  EXPECT_TRUE(WindowRoles::valid(WindowRoles{.writing = 3}.pack(), 4));
}

TEST(WindowRolesTest, AWordWithBitsBeyondTheRolesIsNotValid) {
  EXPECT_FALSE(WindowRoles::valid(WindowRoles{}.pack() | 1ull << 20, 4));
  EXPECT_FALSE(WindowRoles::valid(~0ull, 14));
}

TEST(WindowRolesTest, PublishHandsTheWrittenBufferOver) {
  const auto next = WindowRoles{.writing = 2}.publish(false, 3);
  EXPECT_EQ(next, (WindowRoles{.published = 2}));
}

TEST(WindowRolesTest, PublishAndGoOnTakesAFreeBuffer) {
  const auto next = WindowRoles{.writing = 0, .sealed = 1}.publish(true, 3);
  EXPECT_EQ(next, (WindowRoles{.writing = 2, .published = 0, .sealed = 1}));
}

TEST(WindowRolesTest, PublishFreesTheOlderPublicationInTheSameStep) {
  const auto next = WindowRoles{.writing = 0, .published = 1}.publish(true, 2);
  EXPECT_EQ(next, (WindowRoles{.writing = 1, .published = 0}));
}

TEST(WindowRolesTest, PublishIsRefusedWithoutAWrittenBuffer) {
  EXPECT_FALSE(WindowRoles{.published = 0}.publish(false, 3));
}

TEST(WindowRolesTest, PublishAndGoOnIsRefusedWithoutAFreeBuffer) {
  EXPECT_FALSE((WindowRoles{.writing = 0, .sealed = 1}.publish(true, 2)));
}

TEST(WindowRolesTest, AdoptTakesTheLatestResultAndFreesTheOldWriting) {
  EXPECT_EQ((WindowRoles{.writing = 0, .latest = 1}.adopt()), (WindowRoles{.writing = 1}));
  EXPECT_FALSE((WindowRoles{.writing = 0}.adopt()));
}

TEST(WindowRolesTest, WithdrawTakesAnUnsealedPublicationBackAndFreesTheOldWriting) {
  EXPECT_EQ((WindowRoles{.writing = 0, .published = 1}.withdraw()), (WindowRoles{.writing = 1}));
  EXPECT_FALSE((WindowRoles{.writing = 0, .sealed = 1}.withdraw()));
}

TEST(WindowRolesTest, SealPinsThePublication) {
  EXPECT_EQ((WindowRoles{.published = 1}.seal()), (WindowRoles{.sealed = 1}));
  EXPECT_FALSE(WindowRoles{}.seal());
}

TEST(WindowRolesTest, ASecondSealIsRefusedWhileTheFirstHolds) {
  EXPECT_FALSE((WindowRoles{.published = 1, .sealed = 0}.seal()));
}

TEST(WindowRolesTest, UnsealKeepGivesThePublicationBack) {
  EXPECT_EQ((WindowRoles{.sealed = 1}.unseal(true)), (WindowRoles{.published = 1}));
}

TEST(WindowRolesTest, UnsealKeepFreesItWhereSomethingNewerIsPublished) {
  EXPECT_EQ((WindowRoles{.published = 2, .sealed = 1}.unseal(true)), (WindowRoles{.published = 2}));
}

TEST(WindowRolesTest, UnsealRecycleFreesIt) {
  EXPECT_EQ((WindowRoles{.sealed = 1}.unseal(false)), WindowRoles{});
  EXPECT_FALSE(WindowRoles{}.unseal(false));
}

TEST(WindowRolesTest, BeginResultTakesAFreeBufferOnce) {
  const auto next = WindowRoles{.writing = 0, .sealed = 1}.begin_result(3);
  ASSERT_EQ(next, (WindowRoles{.writing = 0, .sealed = 1, .in_progress = 2}));
  EXPECT_FALSE(next->begin_result(5));
  EXPECT_FALSE((WindowRoles{.writing = 0, .sealed = 1}.begin_result(2)));
}

TEST(WindowRolesTest, BeginResultInPlaceTurnsTheSealedIntoTheResult) {
  EXPECT_EQ((WindowRoles{.sealed = 1}.begin_result_in_place()), (WindowRoles{.in_progress = 1}));
  EXPECT_FALSE(WindowRoles{.published = 1}.begin_result_in_place());
}

TEST(WindowRolesTest, DeliverMakesTheResultTheWorkersBuffer) {
  EXPECT_EQ((WindowRoles{.in_progress = 1}.deliver()), (WindowRoles{.writing = 1}));
  EXPECT_EQ((WindowRoles{.writing = 0, .in_progress = 1}.deliver()), (WindowRoles{.writing = 1}));
  EXPECT_FALSE(WindowRoles{.sealed = 1}.deliver());
}

TEST(WindowRolesTest, RetainReplacesTheLatestResult) {
  EXPECT_EQ((WindowRoles{.in_progress = 1, .latest = 2}.retain()), (WindowRoles{.latest = 1}));
  EXPECT_FALSE(WindowRoles{.latest = 2}.retain());
}

}  // namespace
}  // namespace paceline::memory
