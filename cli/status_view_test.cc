#include "cli/status_view.h"

#include <gtest/gtest.h>

#include "runtime/base/json.h"

namespace paceline::cli {
namespace {

using nlohmann::json;

TEST(StatusViewTest, NodesJobsAndWhoWaitsForWhomAreShown) {
  const json status = {{"name", "default"},
                       {"nodes", {{{"node", 0}, {"pid", 42}, {"workers", 4}, {"rss", 21e6}}}},
                       {"jobs",
                        {{{"job", 1},
                          {"strategy", "allreduce"},
                          {"update", 7},
                          {"updates", 90},
                          {"age_s", 62.5},
                          {"script", "/home/u/job.cpp"},
                          {"run_directory", "/home/u/runs/one"},
                          {"waiting", {{"update", 7}, {"missing", {3}}, {"since_s", 2.5}}},
                          {"workers",
                           {{{"rank", 3},
                             {"node", 0},
                             {"pid", 4711},
                             {"state", "compute"},
                             {"step", 6},
                             {"lag", 1},
                             {"samples_per_s", 812.34}}}}}}}};
  const std::string text = status_text(status);
  for (const char* part : {"'default'", "42", "21 MB",
                           "allreduce, update 7 of 90 (7 %), for 1:03\nof /home/u/job.cpp\nin /home/u/runs/one\n",
                           "4711", "compute", "812.3", "wait for worker 3 at update 7"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

TEST(StatusViewTest, WhatBecameOfTheSamplesOfTheNewestEpochIsShown) {
  json job = {{"job", 1}, {"strategy", "nonblocking"}};
  job["ledger"] = {{{"epoch", 2}, {"samples", 600}, {"committed", 590}, {"abandoned", 9}, {"lost", 1}},
                   {{"epoch", 3}, {"samples", 600}, {"committed", 120}, {"abandoned", 9}, {"skipped", 0}, {"late", 3}}};
  const std::string text = status_text({{"jobs", {job}}});
  EXPECT_NE(text.find("\nof 600 samples of epoch 3: 120 committed, 9 abandoned, 3 late\n"), std::string::npos) << text;
}

TEST(StatusViewTest, TheNewestEvaluationAndWhatIsLoggedAreShown) {
  json job = {{"job", 1}, {"strategy", "allreduce"}};
  job["evaluation"] = {{"name", "accuracy"}, {"unit", "%"},     {"value", 0.881},
                       {"update", 40},       {"clock_s", 83.2}, {"best", true}};
  job["logged"] = {{{"name", "entropy"}, {"worker", 2}, {"value", 0.123456}, {"update", 41}, {"clock_s", 84.5}},
                   {{"name", "none"}, {"worker", 0}, {"value", nullptr}, {"update", 2}, {"clock_s", 0.5}}};
  const std::string text = status_text({{"jobs", {job}}});
  EXPECT_NE(text.find("\naccuracy 88.1 % (the best so far), update 40, at 1:23\n"
                      "entropy 0.123456 (worker 2), update 41, at 1:25\n"
                      "none - (worker 0), update 2, at 0.5 s\n"),
            std::string::npos)
      << text;
  for (int i = 0; i < 20; ++i) job["logged"].push_back(job["logged"][0]);
  EXPECT_NE(status_text({{"jobs", {job}}}).find("\nand 6 more names: --json has them\n"), std::string::npos);
}

TEST(StatusViewTest, WhoCameAndWentLastIsShown) {
  json job = {{"job", 1}, {"strategy", "allreduce"}};
  for (int i = 0; i < 7; ++i)
    job["changes"].push_back({{"event", "left"}, {"text", "worker " + std::to_string(i) + " left"}, {"ago_s", 70 - i}});
  const std::string text = status_text({{"jobs", {job}}});
  EXPECT_NE(text.find("\n1:08 ago: worker 2 left\n1:07 ago: worker 3 left\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("worker 1 left"), std::string::npos);
}

TEST(StatusViewTest, DetachedActorsAndWhatWaitsAreShown) {
  const json detached = {{"id", "18"},          {"name", "x"}, {"class", "Counter"}, {"node", 0}, {"pid", -1},
                         {"state", "starting"}, {"owner", ""}, {"detached", true},   {"calls", 0}};
  const json waits = {{"worker", 3}, {"node", 0}, {"waits_for", "a task"}, {"waits_s", 2.0}};
  const std::string text = status_text({{"actors", {detached}}, {"workers", {waits}}});
  EXPECT_NE(text.find("detached actors\nid  name  class"), std::string::npos) << text;
  EXPECT_NE(text.find("waits for a task, for 2.0 s\n"), std::string::npos) << text;
}

TEST(StatusViewTest, WhatTheHeadCannotWriteIsSaid) {
  const auto text = status_text({{"name", "x"}, {"nodes", json::array()}, {"problem", "state.db: disk full"}});
  EXPECT_NE(text.find("\nthe head cannot keep what becomes of jobs: state.db: disk full\n"), std::string::npos) << text;
}

TEST(StatusViewTest, AnIdleClusterSaysSo) {
  EXPECT_NE(status_text({{"name", "x"}, {"nodes", json::array()}, {"jobs", json::array()}}).find("no job runs"),
            std::string::npos);
}

TEST(StatusViewTest, AnAnswerOfAnotherShapeIsNoReasonToDie) {
  for (const json& odd :
       {json(), json::array(), json(7), json{{"jobs", {1, "x", nullptr}}, {"nodes", {nullptr}}},
        json{{"jobs", {{{"waiting", 3}}}}},
        json{{"jobs", {{{"evaluation", {{"name", 3}, {"unit", 1}, {"best", "x"}}}, {"logged", {1, nullptr}}}}}},
        json{{"jobs", {{{"changes", {1, nullptr}}}, {{"changes", "x"}}}}}}) {
    EXPECT_NE(status_text(odd).find("cluster"), std::string::npos);
  }
}

}  // namespace
}  // namespace paceline::cli
