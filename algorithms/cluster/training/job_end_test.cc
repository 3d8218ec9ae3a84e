#include "algorithms/cluster/training/job_end.h"

#include <gtest/gtest.h>

#include <chrono>

namespace paceline::cluster {
namespace {

using namespace std::chrono_literals;
using Step = JobEnd::Step;

constexpr JobEnd::Patience kPatience{.here = 1s, .most = 5s};
constexpr Instant kBegin{};

TEST(JobEndTest, NothingHappensBeforeTheLastVersion) {
  JobEnd sut(NodeId{0}, {NodeId{0}});
  EXPECT_FALSE(sut.is_settling());
  EXPECT_EQ(sut.next({.all_there = true, .evaluating = false, .leads = true}, kPatience, kBegin + 1h), Step::none);
}

TEST(JobEndTest, OneNodeReleasesAsSoonAsAllAreThere) {
  JobEnd sut(NodeId{0}, {NodeId{0}});
  sut.begin(Version{9}, kBegin);
  EXPECT_EQ(sut.next({.all_there = false, .evaluating = false, .leads = true}, kPatience, kBegin + 999ms), Step::none);
  EXPECT_EQ(sut.next({.all_there = true, .evaluating = false, .leads = true}, kPatience, kBegin + 999ms),
            Step::release);
  sut.on_released();
  EXPECT_FALSE(sut.is_settling());
  EXPECT_EQ(sut.next({.all_there = true, .evaluating = false, .leads = true}, kPatience, kBegin + 1h), Step::none);
}

TEST(JobEndTest, AnEvaluationKeepsThemAndPatienceBeginsAfterIt) {
  JobEnd sut(NodeId{0}, {NodeId{0}});
  sut.begin(Version{9}, kBegin);
  EXPECT_EQ(sut.next({.all_there = false, .evaluating = true, .leads = true}, kPatience, kBegin + 500ms), Step::none);
  sut.wait_from(kBegin + 10s);
  EXPECT_EQ(sut.next({.all_there = false, .evaluating = false, .leads = true}, kPatience, kBegin + 10s), Step::none);
  EXPECT_EQ(sut.next({.all_there = true, .evaluating = false, .leads = true}, kPatience, kBegin + 10s), Step::release);
}

TEST(JobEndTest, NobodyIsReleasedWhileOneEvaluates) {
  JobEnd sut(NodeId{0}, {NodeId{0}});
  sut.begin(Version{9}, kBegin);
  EXPECT_EQ(sut.next({.all_there = true, .evaluating = true, .leads = true}, kPatience, kBegin + 1h), Step::none);
  EXPECT_EQ(sut.next({.all_there = true, .evaluating = false, .leads = true}, kPatience, kBegin + 1h), Step::release);
}

TEST(JobEndTest, WhoDoesNotComeWithinPatienceIsLeftBehindOnce) {
  JobEnd sut(NodeId{0}, {NodeId{0}});
  sut.begin(Version{9}, kBegin);
  EXPECT_EQ(sut.next({.all_there = false, .evaluating = false, .leads = true}, kPatience, kBegin + 1s),
            Step::leave_behind);
  EXPECT_EQ(sut.next({.all_there = true, .evaluating = false, .leads = true}, kPatience, kBegin + 1s), Step::release);
}

TEST(JobEndTest, TheFirstNodeWaitsForTheOthersWord) {
  JobEnd first(NodeId{0}, {NodeId{0}, NodeId{2}});
  JobEnd other(NodeId{2}, {NodeId{0}, NodeId{2}});
  for (JobEnd* end : {&first, &other}) end->begin(Version{4}, kBegin);
  EXPECT_EQ(first.next({.all_there = true, .evaluating = false, .leads = true}, kPatience, kBegin), Step::none);
  EXPECT_EQ(other.next({.all_there = false, .evaluating = false, .leads = false}, kPatience, kBegin), Step::none);
  EXPECT_EQ(other.next({.all_there = true, .evaluating = false, .leads = false}, kPatience, kBegin + 10ms),
            Step::tell_settled);
  EXPECT_EQ(other.next({.all_there = true, .evaluating = false, .leads = false}, kPatience, kBegin + 1h), Step::none)
      << "told once; the first releases";
  first.on_settled(NodeId{2});
  EXPECT_EQ(first.next({.all_there = true, .evaluating = false, .leads = true}, kPatience, kBegin + 20ms),
            Step::release);
}

TEST(JobEndTest, ANodeThatSaysNothingIsNotWaitedForForEver) {
  JobEnd sut(NodeId{0}, {NodeId{0}, NodeId{1}});
  sut.begin(Version{4}, kBegin);
  EXPECT_EQ(sut.next({.all_there = true, .evaluating = false, .leads = true}, kPatience, kBegin + 9999ms), Step::none);
  EXPECT_EQ(sut.next({.all_there = true, .evaluating = false, .leads = true}, kPatience, kBegin + 10s), Step::release);
}

}  // namespace
}  // namespace paceline::cluster
