#include "cli/compare.h"

#include <gtest/gtest.h>

#include "runtime/base/json.h"

namespace paceline::cli {
namespace {

using nlohmann::json;

json result(json time, double rate) {
  return {{"event", "result"},
          {"time_to_target_s", time},
          {"samples_per_s", rate},
          {"step_s", 0.0123},
          {"metric", {{"name", "accuracy"}, {"value", 0.8812}}},
          {"wait_s", 41.26},
          {"group_averages", 120},
          {"global_averages", 12},
          {"skipped_steps", 3},
          {"abandoned_batches", 77},
          {"updates", 234},
          {"samples_per_update", 1024.0}};
}

TEST(CompareTest, TheTableShowsEveryFigureOfARun) {
  const std::string table = comparison_table({{"wagma(late=skip)", result(21.34, 5120.4)}});
  for (const char* cell :
       {"wagma(late=skip)", "21.3 s", "5120", "12.3 ms", "88.1 %", "41.3 s", "120", "12", "3", "77", "234", "1024"}) {
    EXPECT_NE(table.find(cell), std::string::npos) << cell << "\n" << table;
  }
}

TEST(CompareTest, WhatRunsLoggedHasAColumnAName) {
  EXPECT_EQ(comparison_table({{"a", result(1, 1)}}).find("return"), std::string::npos) << "only where there is one";
  auto one = result(1, 1), other = result(1, 1);
  one["logged"] = {{"return", 212.3456}};
  other["logged"] = {{"entropy", 0.5}};
  const std::string table = comparison_table({{"a", one}, {"b", other}, {"c", nullptr}});
  EXPECT_NE(table.find("samples/update  entropy  return\n"), std::string::npos) << table;
  EXPECT_NE(table.find("        -   212.3\n"), std::string::npos) << table;
  EXPECT_NE(table.find("      0.5       -\n"), std::string::npos) << table;
  for (int i = 0; i < 9; ++i) one["logged"]["many" + std::to_string(i)] = i;
  const std::string many = comparison_table({{"a", one}});
  EXPECT_NE(many.find("many7\n"), std::string::npos) << many;
  EXPECT_NE(many.find("and 2 more logged names: `logged` in each run's result.json has them\n"), std::string::npos)
      << many;
}

TEST(CompareTest, WhoWasLostIsNamed) {
  auto lost = result(1, 1);
  lost["lost"] = {1, 3};
  const std::string table = comparison_table({{"wagma", lost}, {"allreduce", result(1, 1)}});
  EXPECT_NE(table.find("wagma (lost 1, 3) "), std::string::npos) << table;
  EXPECT_EQ(table.find("allreduce (lost"), std::string::npos) << table;
}

TEST(CompareTest, WhatIsMissingIsADash) {
  const std::string table = comparison_table({{"a", {{"time_to_target_s", nullptr}, {"samples_per_s", 10}}}});
  EXPECT_NE(table.find(" -"), std::string::npos) << table;
}

TEST(CompareTest, AFailedRunIsShownAsFailed) {
  EXPECT_NE(comparison_table({{"a", result(1, 1)}, {"b", nullptr}}).find("failed"), std::string::npos);
  EXPECT_NE(comparison_in_words({{"a", result(1, 1)}, {"b", nullptr}}).find("b failed"), std::string::npos);
  EXPECT_NE(comparison_in_words({{"a", nullptr}, {"b", result(1, 1)}}).find("nothing to compare with"),
            std::string::npos);
}

TEST(CompareTest, TheWordsSayWhoWasSoonerAndWhoWasNot) {
  const std::string words = comparison_in_words({{"allreduce", result(50, 1000)},
                                                 {"fast", result(20, 2600)},
                                                 {"slow", result(75, 700)},
                                                 {"same", result(51, 990)},
                                                 {"never", result(nullptr, 900)}});
  EXPECT_NE(words.find("fast reached the target in 20.0 s (2.5 times sooner)"), std::string::npos) << words;
  EXPECT_NE(words.find("slow reached the target in 75.0 s (1.5 times later)"), std::string::npos) << words;
  EXPECT_NE(words.find("same reached the target in 51.0 s (no difference)"), std::string::npos) << words;
  EXPECT_NE(words.find("never did not reach the target"), std::string::npos) << words;
  EXPECT_EQ(words.find('\n'), std::string::npos);
}

TEST(CompareTest, WithoutATargetRatesAreCompared) {
  const std::string words = comparison_in_words({{"a", result(nullptr, 1000)}, {"b", result(nullptr, 500)}});
  EXPECT_NE(words.find("b processed 500 samples/s (2.0 times fewer)"), std::string::npos) << words;
}

}  // namespace
}  // namespace paceline::cli
