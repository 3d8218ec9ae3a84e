#include "algorithms/job/job_summary.h"

#include <gmock/gmock.h>

#include "runtime/base/json.h"

namespace paceline::job {
namespace {

using nlohmann::json;
using testing::ElementsAre;

class JobSummaryTest : public testing::Test {
 protected:
  void done(std::int64_t update) {
    sut.on_event({{"event", "started"}, {"updates", 100}});
    json workers = json::array();
    for (int rank = 0; rank < 2; ++rank)
      workers.push_back({{"rank", rank}, {"step", update}, {"samples", 10 * update}, {"wait_s", 0.25}});
    sut.on_event({{"event", "progress"}, {"node", 0}, {"clock_s", 2.0}, {"update", update}, {"workers", workers}});
  }
  void evaluated(std::int64_t update, double value) {
    sut.on_event({{"event", "evaluated"}, {"update", update}, {"clock_s", 1.0}, {"value", value}});
  }

  JobRecord sut{Options{}, {0, 0}};
};

TEST_F(JobSummaryTest, ARunThatCameToItsEnd) {
  done(100);
  evaluated(50, 0.7);
  evaluated(100, 0.75);
  sut.on_event({{"event", "stopping"}, {"text", "interrupted"}});
  EXPECT_THAT(summary_of(sut),
              ElementsAre("all 100 updates are done",
                          "2000 samples in 2.0 s (1000 samples/s); 2 workers waited for 0.5 s together",
                          "accuracy 75.0 %, the best of 2"));
}

TEST_F(JobSummaryTest, OneThatWasStoppedAndWasBetterBefore) {
  done(80);
  evaluated(40, 0.75);
  evaluated(80, 0.7);
  sut.on_event({{"event", "stopping"}, {"text", "enough seen"}});
  sut.on_event({{"event", "left"}, {"worker", 1}});
  EXPECT_THAT(summary_of(sut),
              ElementsAre("ended after 80 updates: enough seen",
                          "1600 samples in 2.0 s (800 samples/s); 2 workers waited for 0.5 s together",
                          "accuracy 70.0 %, the best was 75.0 % after update 40", "lost on the way: worker 1"));
}

TEST_F(JobSummaryTest, WhatIsNotInTheModelIsNamed) {
  done(10);
  const json all{{"epoch", 0}, {"committed", 190}, {"tail", 10}},
      some{{"epoch", 1}, {"committed", 80}, {"late", 2}, {"lost", 7}};
  sut.on_event({{"event", "ledger"}, {"node", 0}, {"epochs", {all}}});
  EXPECT_EQ(summary_of(sut).size(), 1U) << "all is in it but for the tail";
  sut.on_event({{"event", "ledger"}, {"node", 0}, {"epochs", {some}}});
  EXPECT_THAT(summary_of(sut), ElementsAre(testing::_, "in the model: 270 samples, 2 late, 7 lost"));
}

TEST_F(JobSummaryTest, OneThatFailedSaysWhatWasDone) {
  done(10);
  sut.on_event({{"event", "failed"}, {"text", "boom"}});
  sut.on_event({{"event", "stopping"}, {"text", "failed"}});
  EXPECT_THAT(summary_of(sut),
              ElementsAre("200 samples in 2.0 s (100 samples/s); 2 workers waited for 0.5 s together"));
}

}  // namespace
}  // namespace paceline::job
