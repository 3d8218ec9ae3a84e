#include "actors/durable.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace paceline {
namespace {

struct Point {
  int x = 1;
  int y = 2;
};

TEST(DurableTest, OutsideOfAnActorItIsAnObjectLikeOthers) {
  durable<Point> point(Point{3, 4});
  point.write().x = 5;
  EXPECT_EQ(point->x, 5);
  EXPECT_EQ((*point).y, 4);
  EXPECT_FALSE(point.restored());
  durable<std::map<std::string, int>> counts;
  ++counts.write()["a"];
  EXPECT_EQ(counts->at("a"), 1);
}

TEST(DurableTest, ManyBeginAsZerosAndAreChangedInParts) {
  durable_array<double> many(10);
  for (double& one : many.write(2, 3)) one = 1;
  EXPECT_EQ(many[1], 0);
  EXPECT_EQ(many[4], 1);
  EXPECT_EQ(many.view().size(), many.size());
  EXPECT_TRUE(many.write(10, 0).empty());
  EXPECT_THROW((void)many.write(8, 3), TaskError);
  EXPECT_THROW((void)many.write(11, 0), TaskError);
  EXPECT_TRUE(durable_array<int>(0).view().empty());
}

}  // namespace
}  // namespace paceline
