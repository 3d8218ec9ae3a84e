#include <gmock/gmock.h>

#include "cli/reproduce/study.h"

namespace paceline::cli::reproduce {
namespace {

using ::testing::HasSubstr;

Study study() {
  Study result{.name = "x", .title = "A paper", .setting = "All alike.", .claims = {}, .plot_in_words = "", .plot = {}};
  result.claims = {{"a|b", Method::closed_form, "2.0", "2.1", true, "rounding"},
                   {"c", Method::monte_carlo, "-", "3", false, "no \"network\""}};
  return result;
}

TEST(ReproducePageTest, HasOneRowAClaim) {
  const std::string page = page_of(study(), "paceline reproduce x");
  EXPECT_THAT(page, HasSubstr("| a\\|b | closed form | 2.0 | 2.1 | yes | rounding |"));
  EXPECT_THAT(page, HasSubstr("| c | Monte Carlo | - | 3 | **no** |"));
  EXPECT_THAT(page, HasSubstr("1 of 2 claims hold"));
  EXPECT_THAT(page, HasSubstr("(x.svg)"));
}

TEST(ReproducePageTest, HasOneLineOfJsonAClaim) {
  const std::string lines = json_of(study());
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 2);
  EXPECT_THAT(lines, HasSubstr(R"("holds":false)"));
  EXPECT_THAT(lines, HasSubstr(R"("why":"no \"network\"")"));
}

}  // namespace
}  // namespace paceline::cli::reproduce
