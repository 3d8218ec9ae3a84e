#include "actors/serialise.h"

#include <gmock/gmock.h>

#include <cstdint>
#include <limits>

namespace paceline::actors {
namespace {

using testing::HasSubstr;

struct Point {
  int x = 0;
  std::string name;
  std::vector<double> values;
  bool operator==(const Point&) const = default;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(x, name, values);
  }
};
struct Opaque {
  int x = 0;
};
struct NoDefault {
  explicit NoDefault(int) {}
  template <class Archive>
  void serialize(Archive&) {}
};

static_assert(Serialisable<int> && Serialisable<std::string> && Serialisable<Point> && Serialisable<const Point>);
static_assert(Serialisable<std::map<std::string, std::vector<std::optional<Point>>>>);
static_assert(!Serialisable<int*> && !Serialisable<int&> && !Serialisable<Opaque> && !Serialisable<NoDefault>);
static_assert(!Serialisable<std::vector<Opaque>> && !Serialisable<std::pair<int, int*>>);

template <class T>
T there_and_back(const T& value) {
  const auto back = from_bytes<T>(to_bytes(value), "a value");
  EXPECT_TRUE(back) << back.error().text;
  return *back;
}

TEST(SerialiseTest, WhatGoesInComesOut) {
  EXPECT_EQ(there_and_back(std::numeric_limits<std::int64_t>::min()), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(there_and_back(true), true);
  EXPECT_EQ(there_and_back(std::string("a\0b", 3)), std::string("a\0b", 3));
  const Point point{7, "seven", {1.5, -2}};
  EXPECT_EQ(there_and_back(point), point);
  const std::map<std::string, std::vector<std::optional<Point>>> nested{{"a", {point, std::nullopt}}, {"", {}}};
  EXPECT_EQ(there_and_back(nested), nested);
}

TEST(SerialiseTest, BytesThatEndTooEarlyAreRefusedAtEveryLength) {
  auto bytes = to_bytes(Point{7, "seven", {1.5, -2}});
  while (!bytes.empty()) {
    bytes.pop_back();
    const auto point = from_bytes<Point>(bytes, "argument 2");
    ASSERT_FALSE(point);
    EXPECT_EQ(point.error().kind, ErrorKind::invalid);
    EXPECT_THAT(point.error().text, HasSubstr("cannot decode argument 2"));
  }
}

TEST(SerialiseTest, BytesTooManyAreRefused) {
  auto bytes = to_bytes(std::int32_t{5});
  bytes.push_back({});
  const auto number = from_bytes<std::int32_t>(bytes, "a number");
  ASSERT_FALSE(number);
  EXPECT_THAT(number.error().text, HasSubstr("1 bytes too many"));
}

TEST(SerialiseTest, AContainerThatClaimsMoreThanThereIsAllocatesNothing) {
  const auto bytes = to_bytes(std::uint64_t{1} << 60);  // Where a vector's size stands.
  EXPECT_FALSE(from_bytes<std::vector<double>>(bytes, "a vector"));
  EXPECT_FALSE(from_bytes<std::string>(bytes, "a string"));
}

TEST(SerialiseTest, AnyByteMakesAValidBool) {
  const auto truth = from_bytes<bool>(Bytes{std::byte{2}}, "a bool");
  ASSERT_TRUE(truth);
  EXPECT_EQ(*truth, true);
}

}  // namespace
}  // namespace paceline::actors
