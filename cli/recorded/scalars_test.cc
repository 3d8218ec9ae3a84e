#include "cli/recorded/scalars.h"

#include <gtest/gtest.h>

#include "cli/recorded/recorded_test_support.h"

namespace paceline::recorded {
namespace {

class ScalarsTest : public RunDirectoryTest {};

TEST_F(ScalarsTest, LossEvaluationsAndWhatWorkersLogged) {
  write("configuration.json", R"({"options": {"metric": {"name": "perplexity", "direction": "minimise"}}})");
  write("metrics.jsonl",
        progress(1, 1, 2.5, 100) + progress(1, 1.2, 2.5, 120) +
            R"({"event": "metric", "worker": 3, "update": 2, "clock_s": 1.4, "name": "entropy", "value": 0.5})"
            "\n" +
            R"({"event": "evaluated", "update": 2, "clock_s": 1.5, "value": null})"
            "\n" +
            evaluated(2, 1.5, 35) + "no event\n" +
            R"({"event": "progress", "node": 1, "update": 2, "loss": 9})"
            "\n" +
            progress(2, 2, 2, 200));
  const auto scalars = scalars_of(folder);
  ASSERT_TRUE(scalars) << scalars.error().text;
  std::string text;
  for (const auto& s : *scalars)
    text += s.name + " " + std::to_string(s.worker) + " " + std::to_string(s.update) + " " +
            std::to_string(s.clock_s).substr(0, 3) + " " + std::to_string(s.value).substr(0, 4) + "\n";
  EXPECT_EQ(text,
            "loss -1 1 1.0 2.50\n"
            "entropy 3 2 1.4 0.50\n"
            "perplexity -1 2 1.5 35.0\n"
            "loss -1 2 2.0 2.00\n");
}

TEST_F(ScalarsTest, WhatIsNoRunIsRefused) {
  EXPECT_EQ(scalars_of(folder).error().kind, ErrorKind::not_found);
  write("metrics.jsonl", "");
  const auto none = scalars_of(folder);
  ASSERT_TRUE(none);
  EXPECT_TRUE(none->empty());
}

}  // namespace
}  // namespace paceline::recorded
