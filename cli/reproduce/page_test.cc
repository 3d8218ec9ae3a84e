#include <gmock/gmock.h>

#include "cli/reproduce/study.h"

namespace paceline::cli::reproduce {
namespace {

using ::testing::HasSubstr;

Study study() {
  Study result{.name = "x",
               .title = "A paper",
               .setting = "All alike.",
               .claims = {},
               .plot_in_words = "",
               .plot = {.title = "A plot", .x_name = "", .y_name = "", .lines = {}},
               .plotted = "Fig. 2"};
  result.claims = {{"Fig. 1: a|b", Method::closed_form, "2.0", {{"", {{2.1}}, Bound::within(2, .2), 1}}, "rounding"},
                   {"Fig. 2: c",
                    Method::monte_carlo,
                    "-",
                    {{"d", {{.5, .7}}, Bound::above(1), 1}, {"e", {{2, 4}}, Bound::above(1), 1}},
                    "no \"network\""},
                   {"Fig. 3", Method::closed_form, "1", {{"", {{1}}, Bound::at_least(1)}}, "", Evidence::fitted},
                   not_tried("Fig. 4: f", "9 h", "no time")};
  return result;
}

TEST(ReproducePageTest, HasOneRowAClaim) {
  const std::string page = page_of(study(), "paceline reproduce x");
  EXPECT_THAT(page, HasSubstr("| Fig. 1: a\\|b | closed form | 2.0 | 2.1 | 1.8 to 2.2 | holds | rounding |"));
  EXPECT_THAT(page, HasSubstr("| Fig. 2: c | Monte Carlo | - | d: 0.6 (0.5 to 0.7); e: 3.0 (2.0 to 4.0) | each > 1; "
                              "**d: reversed** | **does not hold** |"));
  EXPECT_THAT(page, HasSubstr("| Fig. 4: f | - | 9 h | - | - | not tried | no time |"));
}

TEST(ReproducePageTest, CountsVerdictsByKind) {
  EXPECT_THAT(page_of(study(), ""),
              HasSubstr("4 claims. holds: 1; holds by construction: 0; fitted: 1; does not hold: 1; not tried: 1."));
}

TEST(ReproducePageTest, ThePlotSaysWhatBecameOfItsClaim) {
  EXPECT_EQ(plot_of(study()).title, "A plot; Fig. 2: does not hold");
  EXPECT_THAT(page_of(study(), ""), HasSubstr("![A plot; Fig. 2: does not hold](x.svg)"));
}

TEST(ReproducePageTest, HasOneLineOfJsonAClaim) {
  const std::string lines = json_of(study());
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 4);
  EXPECT_THAT(lines, HasSubstr(R"("verdict":"does not hold")"));
  EXPECT_THAT(lines, HasSubstr(R"("bound":"each > 1","keeps":false,"name":"d","values":[0.5,0.7])"));
  EXPECT_THAT(lines, HasSubstr(R"("why":"no \"network\"")"));
}

}  // namespace
}  // namespace paceline::cli::reproduce
