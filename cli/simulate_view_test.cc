#include "cli/simulate_view.h"
#include "runtime/base/json.h"

#include <gmock/gmock.h>

#include <sstream>

#include "cli/simulate_plot.h"

namespace paceline::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

simulate::Figures figures(double batches_per_s, double loss) {
  simulate::Figures made;
  made.virtual_s = 20;
  made.batches_per_s = batches_per_s;
  made.share_done = 0.75;
  made.waited = 0.125;
  made.loss = loss;
  made.bytes = 1000;
  made.curve = {{0, 10}, {10, 1}, {20, loss}};
  return made;
}

TEST(SimulateView, AJobIsAWorkersTableAndASentence) {
  simulate::Job job;
  job.strategy = "wagma";
  job.steps = 2;
  simulate::Row row{};
  row.worker = Rank{1};
  row.fresh = false;
  row.loss = 0.25;
  const simulate::Outcome outcome{.rows = {row},
                                  .summary = {.model = {1.5},
                                              .time = from_seconds(4),
                                              .messages = 3,
                                              .bytes = 24,
                                              .waited = {Duration(0), from_seconds(2)}}};
  const std::string text = job_text(job, outcome);
  EXPECT_THAT(text, HasSubstr("     1      1        1     1     2 s       0.25\n"));
  EXPECT_THAT(text, HasSubstr("model (1.5) after 4 s; 3 messages, 24 B"));
  EXPECT_THAT(text, HasSubstr("2 workers did 1 of 4 steps in 4 s, stood waiting for 25.0 % of the time, and came late "
                              "with 100.0 % of the steps."));
}

TEST(SimulateView, AScenarioIsComparedWithTheBase) {
  simulate::Scenario scenario;
  scenario.steps = 10;
  scenario.model_bytes = 256e6;
  const std::vector<SimulatedStrategy> strategies = {{"allreduce", figures(2, 0.5)}, {"wagma", figures(5, 1.0 / 0.0)}};
  const std::string table = scenario_table(strategies, strategies[0].figures, scenario);
  EXPECT_THAT(table, AllOf(HasSubstr("1.00x"), HasSubstr("2.50x"), HasSubstr("diverged"), HasSubstr("2 s"),
                           HasSubstr("12.5 %"), HasSubstr("1 GB")));
  EXPECT_THAT(scenario_in_words(strategies, strategies[0].figures, scenario),
              AllOf(HasSubstr("wagma had the most samples/s, 2.50 times those of allreduce, and diverged; "),
                    HasSubstr("allreduce came lowest, to 0.5.")));
  EXPECT_THAT(scenario_in_words({strategies[1]}, strategies[0].figures, scenario),
              HasSubstr("wagma took 20 s, had 2.50 times the samples/s of allreduce and diverged."));
  std::istringstream lines(scenario_json(strategies, strategies[0].figures, scenario));
  std::string line;
  std::getline(lines, line);
  const auto read = nlohmann::json::parse(line);
  EXPECT_EQ(read["strategy"], "allreduce");
  EXPECT_EQ(read["bytes"], 1e9);
  EXPECT_EQ(read["curve"][1], (std::vector<double>{10, 1}));
}

TEST(SimulateView, TimesAndSizesAreRound) {
  EXPECT_EQ(time_in_words(0.0123), "12.3 ms");
  EXPECT_EQ(time_in_words(42), "42 s");
  EXPECT_EQ(time_in_words(180), "3 min");
  EXPECT_EQ(time_in_words(7200), "2 hours");
  EXPECT_EQ(size_in_words(4.1e9), "4.1 GB");
  EXPECT_EQ(size_in_words(999.9), "1 kB");
}

TEST(SimulatePlot, HasTitleAxesCurvesAndALegend) {
  const Plot sut{.title = "Loss <of 4>",
                 .x_name = "time, s",
                 .y_name = "loss",
                 .lines = {{"allreduce", {{0, 10}, {10, 1}}}, {"a & b", {{0, 10}, {5, 0}, {10, 0.0 / 0.0}}}}};
  const std::string svg = sut.svg();
  EXPECT_THAT(svg, AllOf(HasSubstr("Loss &lt;of 4&gt;"), HasSubstr("time, s"), HasSubstr(">loss<"),
                         HasSubstr("a &amp; b"), HasSubstr("<polyline"), HasSubstr("prefers-color-scheme: dark")));
  EXPECT_THAT(svg, AllOf(Not(HasSubstr("nan")), Not(HasSubstr("inf"))));
  EXPECT_THAT(sut.html("a < b"), AllOf(HasSubstr("<!doctype html>"), HasSubstr("<pre"), HasSubstr("a &lt; b")));
}

TEST(SimulatePlot, IsAsWideAsWhatIsWritten) {
  Plot sut{.title = "short", .x_name = "x", .y_name = "y", .lines = {{"allreduce", {{0, 1}}}}};
  EXPECT_THAT(sut.svg(), HasSubstr("width=\"860\""));
  sut.lines[0].name = std::string(200, 'n');
  EXPECT_THAT(sut.svg(), HasSubstr("width=\"1586\""));
  EXPECT_THAT(sut.html("table\n\nA sentence."),
              HasSubstr("<pre>table</pre>\n<pre class=\"said\">\n\nA sentence.</pre>"));
}

TEST(SimulatePlot, OfNothingIsStillAPlot) {
  const Plot sut{.title = "none", .x_name = "x", .y_name = "y", .lines = {{"empty", {}}}};
  EXPECT_THAT(sut.svg(), AllOf(HasSubstr("</svg>"), Not(HasSubstr("nan"))));
}

}  // namespace
}  // namespace paceline::cli
