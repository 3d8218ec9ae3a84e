#include "cli/status_view.h"

#include <gtest/gtest.h>

#include "runtime/base/json.h"

namespace paceline::cli {
namespace {

using nlohmann::json;

TEST(StatusViewTest, NodesJobsAndWhoWaitsForWhomAreShown) {
  const json status = {
      {"name", "default"},
      {"nodes", {{{"node", 0}, {"pid", 42}, {"workers", 4}, {"rss", 21e6}}}},
      {"jobs",
       {{{"job", 1},
         {"strategy", "allreduce"},
         {"update", 7},
         {"updates", 90},
         {"age_s", 62.5},
         {"run_directory", "/home/u/runs/one"},
         {"waiting", {{"update", 7}, {"missing", {3}}, {"since_s", 2.5}}},
         {"workers",
          {{{"rank", 3}, {"node", 0}, {"state", "compute"}, {"step", 6}, {"lag", 1}, {"samples_per_s", 812.34}}}}}}}};
  const std::string text = status_text(status);
  for (const char* part :
       {"'default'", "42", "21 MB", "allreduce, update 7 of 90 (7 %), for 1:03\nin /home/u/runs/one\n", "compute",
        "812.3", "wait for worker 3 at update 7"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

TEST(StatusViewTest, AnIdleClusterSaysSo) {
  EXPECT_NE(status_text({{"name", "x"}, {"nodes", json::array()}, {"jobs", json::array()}}).find("no job runs"),
            std::string::npos);
}

TEST(StatusViewTest, AnAnswerOfAnotherShapeIsNoReasonToDie) {
  for (const json& odd : {json(), json::array(), json(7), json{{"jobs", {1, "x", nullptr}}, {"nodes", {nullptr}}},
                          json{{"jobs", {{{"waiting", 3}}}}}}) {
    EXPECT_NE(status_text(odd).find("cluster"), std::string::npos);
  }
}

}  // namespace
}  // namespace paceline::cli
