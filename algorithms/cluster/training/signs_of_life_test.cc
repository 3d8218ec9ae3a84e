#include "algorithms/cluster/training/signs_of_life.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace paceline::cluster {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;

class SignsOfLifeTest : public testing::Test {
 protected:
  std::vector<Rank> asked_at(Duration at) { return sut.look(Instant(at)).ask; }

  SignsOfLife sut;
};

TEST_F(SignsOfLifeTest, WhoWasHeardWithinASecondIsNotAsked) {
  sut.join(Rank{0}, Instant(seconds(10)));
  EXPECT_THAT(asked_at(seconds(10)), IsEmpty());
  EXPECT_THAT(asked_at(milliseconds(10999)), IsEmpty());
}

TEST_F(SignsOfLifeTest, WhoIsSilentIsAskedUntilItAnswers) {
  sut.join(Rank{0}, Instant(seconds(10)));
  sut.join(Rank{1}, Instant(milliseconds(10500)));
  EXPECT_THAT(asked_at(seconds(10)), IsEmpty());
  EXPECT_THAT(asked_at(seconds(11)), ElementsAre(Rank{0}));
  EXPECT_THAT(asked_at(milliseconds(11500)), ElementsAre(Rank{1}));
  EXPECT_THAT(asked_at(seconds(13)),
              IsEmpty());  // No more than one question is under way to somebody who stands still.
}

TEST_F(SignsOfLifeTest, AnAnswerIsASign) {
  sut.join(Rank{0}, Instant(seconds(10)));
  EXPECT_THAT(asked_at(seconds(11)), ElementsAre(Rank{0}));
  sut.answered(Rank{0}, Instant(milliseconds(11100)));
  EXPECT_THAT(asked_at(seconds(12)), IsEmpty());
  EXPECT_THAT(asked_at(milliseconds(12100)), ElementsAre(Rank{0}));
}

TEST_F(SignsOfLifeTest, WhoArrivesStillOwesItsAnswer) {
  sut.join(Rank{0}, Instant(seconds(10)));
  EXPECT_THAT(asked_at(seconds(11)), ElementsAre(Rank{0}));
  sut.heard(Rank{0}, Instant(milliseconds(11100)));
  EXPECT_THAT(asked_at(seconds(13)), IsEmpty());
}

TEST_F(SignsOfLifeTest, WhoWasHeardWithinAQuestionAndItsAnswerIsAlive) {
  EXPECT_FALSE(sut.is_alive(Rank{0}, Instant(seconds(10)))) << "it has not joined";
  sut.join(Rank{0}, Instant(seconds(10)));
  EXPECT_TRUE(sut.is_alive(Rank{0}, Instant(milliseconds(11999))));
  EXPECT_FALSE(sut.is_alive(Rank{0}, Instant(seconds(12))));
  sut.answered(Rank{0}, Instant(seconds(12)));
  EXPECT_TRUE(sut.is_alive(Rank{0}, Instant(seconds(12))));
  sut.leave(Rank{0});
  EXPECT_FALSE(sut.is_alive(Rank{0}, Instant(seconds(12))));
}

TEST_F(SignsOfLifeTest, WhoHasLeftIsNotAsked) {
  sut.join(Rank{0}, Instant(seconds(10)));
  sut.leave(Rank{0});
  sut.heard(Rank{0}, Instant(seconds(10)));  // What was still under way.
  EXPECT_THAT(asked_at(seconds(11)), IsEmpty());
}

TEST_F(SignsOfLifeTest, NobodyWasSilentWhileThisProcessStoodStill) {
  sut.join(Rank{0}, Instant(seconds(10)));
  sut.join(Rank{1}, Instant(seconds(10)));
  (void)sut.look(Instant(seconds(10)));
  const auto look = sut.look(Instant(seconds(30)));
  EXPECT_THAT(look.unheard, ElementsAre(Rank{0}, Rank{1}));
  EXPECT_THAT(look.ask, ElementsAre(Rank{0}, Rank{1}));
}

TEST_F(SignsOfLifeTest, ADelayIsNoStandstill) {
  sut.join(Rank{0}, Instant(seconds(10)));
  (void)sut.look(Instant(seconds(10)));
  EXPECT_THAT(sut.look(Instant(milliseconds(11999))).unheard, IsEmpty());
}

}  // namespace
}  // namespace paceline::cluster
