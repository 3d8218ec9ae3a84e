#include "algorithms/train/worker_settings.h"

#include <gtest/gtest.h>
#include <cstdlib>

namespace paceline::train {
namespace {

TEST(WorkerSettingsTest, ReadsWhatConcernsAWorkerAndIgnoresTheRest) {
  const auto settings = parse_worker_settings(
      R"({"workers":4,"strategy":"wagma","batch":16,"samples":60000,"seed":7,"run_directory":"/runs/1","slow":"3:4x","straggle":"1:40ms","epochs":2.5,"optimizer_state":"average","buffers":"keep"})");
  ASSERT_TRUE(settings) << settings.error().text;
  EXPECT_EQ(settings->options.batch, 16);
  EXPECT_EQ(settings->options.seed, 7U);
  EXPECT_EQ(settings->slow.factors.at(3), 4);
  EXPECT_EQ(settings->straggle.count, 1);
  EXPECT_EQ(settings->optimizer_state, OptimizerState::average);
  EXPECT_FALSE(settings->average_buffers);
  EXPECT_EQ(settings->checkpoint_path(), "/runs/1/checkpoint.safetensors");
}

TEST(WorkerSettingsTest, TheEnvironmentFillsInWhatTheJobDoesNotSay) {
  ::setenv("PACELINE_SLOW", "1:2x", 1);
  EXPECT_EQ(parse_worker_settings("{}").value().slow.factors.at(1), 2);
  EXPECT_EQ(parse_worker_settings(R"({"slow":"0:3x"})").value().slow.factors.count(1), 0U);
  ::unsetenv("PACELINE_SLOW");
  EXPECT_TRUE(parse_worker_settings("{}").value().checkpoint_path().empty());
}

TEST(WorkerSettingsTest, ErrorsNameTheKey) {
  const auto refused = [](const char* json, const char* word) {
    const auto settings = parse_worker_settings(json);
    ASSERT_FALSE(settings) << json;
    EXPECT_NE(settings.error().text.find(word), std::string::npos) << settings.error().text;
  };
  refused("[]", "JSON");
  refused(R"({"batch":"16"})", "batch");
  refused(R"({"batch":0})", "batch");
  refused(R"({"seed":-1})", "seed");
  refused(R"({"workers":0})", "workers");
  refused(R"({"slow":"3"})", "3:4x");
  refused(R"({"optimizer_state":"mean"})", "keep, reset or average");
  refused(R"({"buffers":"reset"})", "average or keep");
}

}  // namespace
}  // namespace paceline::train
