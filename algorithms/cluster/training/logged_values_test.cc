#include "algorithms/cluster/training/logged_values.h"

#include <gtest/gtest.h>

namespace paceline::cluster {
namespace {

using nlohmann::json;

json entry(const char* name, int worker, int update, double clock_s, double value) {
  return {{"name", name}, {"worker", worker}, {"update", update}, {"clock_s", clock_s}, {"value", value}};
}

TEST(LoggedValuesTest, OfEachNameTheNewestIsKept) {
  LoggedValues sut;
  sut.on_value("return", Rank{0}, 4, 1.0, 10);
  sut.on_value("entropy", Rank{0}, 4, 1.0, 0.5);
  sut.on_value("return", Rank{1}, 6, 1.5, 12);
  sut.on_value("return", Rank{0}, 5, 1.6, 11);  // Of a worker that is behind.
  EXPECT_EQ(sut.list(), (json{entry("entropy", 0, 4, 1.0, 0.5), entry("return", 1, 6, 1.5, 12)}));
}

TEST(LoggedValuesTest, ManyNamesAreBounded) {
  LoggedValues sut;
  for (std::size_t i = 0; i < 2 * LoggedValues::kNamesMax; ++i)
    sut.on_value("many" + std::to_string(i), Rank{0}, 1, 0, 1);
  EXPECT_EQ(sut.list().size(), LoggedValues::kNamesMax);
  sut.on_value("many0", Rank{0}, 2, 0, 7);
  EXPECT_EQ(sut.list()[0]["value"], 7) << "those that are known are followed";
}

TEST(LoggedValuesTest, TwoNodesListsAreOne) {
  const json one{entry("a", 0, 4, 1, 1), entry("b", 0, 9, 2, 2)};
  const json two{entry("b", 1, 7, 1, 3), entry("c", 1, 1, 1, 4)};
  EXPECT_EQ(LoggedValues::newest_of(one, two), (json{one[0], one[1], two[1]}));
  EXPECT_EQ(LoggedValues::newest_of(nullptr, two), two);
  EXPECT_EQ(LoggedValues::newest_of(json{1, nullptr}, 7), json::array());
}

}  // namespace
}  // namespace paceline::cluster
