#include "cli/prometheus.h"

#include <gtest/gtest.h>

#include "runtime/base/json.h"

namespace paceline::cli {
namespace {

using nlohmann::json;

TEST(PrometheusTest, AJobAndItsWorkersAreLines) {
  const json status = {{"nodes", {{{"node", 0}, {"answers", true}, {"workers", 2}}}},
                       {"jobs",
                        {{{"job", 7},
                          {"strategy", "wagma(sync=5)"},
                          {"update", 12},
                          {"loss", 0.5},
                          {"counters", {{"skipped", 3}}},
                          {"workers", {{{"rank", 1}, {"node", 0}, {"samples", 640}, {"state", "compute"}}}}}}}};
  EXPECT_EQ(prometheus_text(status),
            "# HELP paceline_node_answers 1 where the node's agent answers\n"
            "# TYPE paceline_node_answers gauge\n"
            "paceline_node_answers{node=\"0\"} 1\n"
            "# HELP paceline_node_workers Worker processes of the node\n"
            "# TYPE paceline_node_workers gauge\n"
            "paceline_node_workers{node=\"0\"} 2\n"
            "# HELP paceline_job_updates_done Updates that are done\n"
            "# TYPE paceline_job_updates_done gauge\n"
            "paceline_job_updates_done{job=\"7\",strategy=\"wagma(sync=5)\"} 12\n"
            "# HELP paceline_job_loss Training loss of the last update\n"
            "# TYPE paceline_job_loss gauge\n"
            "paceline_job_loss{job=\"7\",strategy=\"wagma(sync=5)\"} 0.5\n"
            "# HELP paceline_job_skipped_steps_total Iterations that late workers jumped over\n"
            "# TYPE paceline_job_skipped_steps_total counter\n"
            "paceline_job_skipped_steps_total{job=\"7\",strategy=\"wagma(sync=5)\"} 3\n"
            "# HELP paceline_worker_samples_total Training samples that the worker has processed\n"
            "# TYPE paceline_worker_samples_total counter\n"
            "paceline_worker_samples_total{job=\"7\",strategy=\"wagma(sync=5)\",worker=\"1\",node=\"0\"} 640\n");
}

TEST(PrometheusTest, WhatIsEvaluatedAndLoggedHasItsName) {
  const std::string text = prometheus_text(
      {{"jobs",
        {{{"job", 7},
          {"strategy", "s"},
          {"evaluation", {{"name", "perplexity"}, {"value", 35.5}, {"update", 40}}},
          {"logged",
           {{{"name", "entropy"}, {"value", 0.5}, {"update", 41}}, {{"name", "none"}, {"value", nullptr}}}}}}}});
  EXPECT_NE(text.find("\npaceline_job_metric{job=\"7\",strategy=\"s\",name=\"perplexity\"} 35.5\n"), std::string::npos)
      << text;
  EXPECT_NE(text.find("\npaceline_job_metric_update{job=\"7\",strategy=\"s\",name=\"perplexity\"} 40\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("\npaceline_job_logged{job=\"7\",strategy=\"s\",name=\"entropy\"} 0.5\n"), std::string::npos)
      << text;
  EXPECT_NE(text.find("\npaceline_job_logged_update{job=\"7\",strategy=\"s\",name=\"entropy\"} 41\n"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("none"), std::string::npos) << text;
}

TEST(PrometheusTest, AMetricIsNamedOnceForAllThatHaveIt) {
  const std::string text = prometheus_text({{"nodes", {{{"node", 0}, {"workers", 1}}, {{"node", 1}, {"workers", 2}}}}});
  EXPECT_EQ(text.find("# TYPE paceline_node_workers"), text.rfind("# TYPE paceline_node_workers"));
  EXPECT_NE(text.find("{node=\"1\"} 2\n"), std::string::npos) << text;
}

TEST(PrometheusTest, LabelsAreEscaped) {
  const std::string text = prometheus_text({{"jobs", {{{"job", 1}, {"strategy", "a\"b\\c\nd"}, {"update", 1}}}}});
  EXPECT_NE(text.find(R"(strategy="a\"b\\c\nd"})"), std::string::npos) << text;
}

TEST(PrometheusTest, WhatIsNoNumberIsLeftOut) {
  EXPECT_EQ(prometheus_text(nullptr), "");
  EXPECT_EQ(prometheus_text({{"jobs", 3}, {"nodes", {1, nullptr}}}), "");
  EXPECT_EQ(prometheus_text({{"jobs", {{{"loss", nullptr}, {"update", "x"}, {"counters", 1}, {"workers", 2}}}}}), "");
}

}  // namespace
}  // namespace paceline::cli
