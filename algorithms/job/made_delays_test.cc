#include "algorithms/job/made_delays.h"

#include <gtest/gtest.h>

namespace paceline::job {
namespace {

TEST(MadeDelaysTest, FactorsAreReadWithAndWithoutTheirX) {
  const auto slow = parse_slow_workers("3:4x,0:1.5");
  ASSERT_TRUE(slow);
  EXPECT_EQ(slow->factors, (std::map<std::int32_t, double>{{0, 1.5}, {3, 4}}));
  EXPECT_TRUE(parse_slow_workers("").value().factors.empty());
  EXPECT_FALSE(parse_slow_workers("3:4x,")) << "a part is missing";
}

TEST(MadeDelaysTest, BadTextsAreRefusedWithTheForm) {
  for (const char* text : {"3", "3:0.5x", "x:4x", "3:4xx", "-1:4x", "3:nanx", "3:infx", ":4x", "3:1e9x"}) {
    const auto parsed = parse_slow_workers(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_NE(parsed.error().text.find("3:4x"), std::string::npos);
  }
  for (const char* text : {"1", "1:40", "1:40m", "1:-40ms", "a:1s", "-1:1s", "1:1e9s"}) {
    const auto parsed = parse_random_delay(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_NE(parsed.error().text.find("1:40ms"), std::string::npos);
  }
}

TEST(MadeDelaysTest, UnitsAreRead) {
  EXPECT_DOUBLE_EQ(parse_random_delay("1:40us").value().seconds, 40e-6);
  EXPECT_DOUBLE_EQ(parse_random_delay("1:0.5s").value().seconds, 0.5);
  EXPECT_EQ(parse_random_delay("").value().count, 0);
}

}  // namespace
}  // namespace paceline::job
