#include "algorithms/simulate/job_lines.h"

#include <gtest/gtest.h>

#include <limits>

#include "runtime/base/json.h"

namespace paceline::simulate {
namespace {

using nlohmann::json;

TEST(JobLines, ARowReadsBackAsTheSameNumbers) {
  const double third = 1.0 / 3, tiny = std::numeric_limits<double>::denorm_min();
  const Row row{.worker = Rank{2},
                .step = Version{7},
                .time = from_seconds(1.5),
                .model = {third, -1e300, tiny},
                .fresh = false,
                .group = {Rank{0}, Rank{2}},
                .weight = 0.75,
                .period = 4,
                .batches_done = 3,
                .loss = 0.1};
  std::string line;
  append_line(line, row);
  EXPECT_EQ(line.back(), '\n');
  const json read = json::parse(line);
  EXPECT_EQ(read, json({{"worker", 2},
                        {"step", 7},
                        {"time_s", 1.5},
                        {"model", {third, -1e300, tiny}},
                        {"fresh", false},
                        {"group", {0, 2}},
                        {"weight", 0.75},
                        {"period", 4},
                        {"batches_done", 3},
                        {"loss", 0.1}}));
}

TEST(JobLines, TheSummaryIsMarked) {
  std::string line;
  append_line(line, Summary{.model = {2},
                            .time = from_seconds(3),
                            .messages = 12,
                            .bytes = 96,
                            .waited = {from_seconds(0.5), Duration(0)}});
  EXPECT_EQ(line, "{\"summary\":true,\"model\":[2],\"virtual_s\":3,\"messages\":12,\"bytes\":96,\"wait_s\":[0.5,0]}\n");
}

TEST(JobLines, WhatDivergedIsNull) {
  std::string line;
  Row row{};
  row.model = {std::numeric_limits<double>::infinity()};
  row.loss = std::numeric_limits<double>::quiet_NaN();
  append_line(line, row);
  EXPECT_TRUE(json::parse(line)["model"][0].is_null());
  EXPECT_TRUE(json::parse(line)["loss"].is_null());
}

}  // namespace
}  // namespace paceline::simulate
