#include "actors/serialise.h"

#include <gmock/gmock.h>

#include <Eigen/Core>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "actors/invoke.h"

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

// Where else cereal would need Eigen's headers, or a serialize() in them.
static_assert(Serialisable<Eigen::MatrixXd> && Serialisable<Eigen::Vector3f> && Serialisable<Eigen::ArrayXXi>);
static_assert(Serialisable<std::vector<Eigen::MatrixXcd>> && Serialisable<std::map<std::string, Eigen::RowVectorXf>>);
static_assert(!Serialisable<Eigen::Map<Eigen::MatrixXd>> && !Serialisable<Eigen::Ref<Eigen::MatrixXd>>);
static_assert(!Serialisable<Eigen::Matrix<Point, 2, 2>>);

TEST(SerialiseTest, AMatrixKeepsItsShapeAndItsNumbers) {
  const Eigen::MatrixXd columns = Eigen::MatrixXd::Random(3, 5);
  EXPECT_EQ(there_and_back(columns), columns);
  const Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> rows = Eigen::MatrixXf::Random(2, 7);
  EXPECT_EQ(there_and_back(rows), rows);
  const Eigen::Vector3d fixed(1, 2, 3);
  EXPECT_EQ(there_and_back(fixed), fixed);
  const Eigen::MatrixXd none(0, 4);
  EXPECT_EQ(there_and_back(none).cols(), 4);
  const std::vector<Eigen::VectorXcd> several{Eigen::VectorXcd::Random(2), Eigen::VectorXcd::Random(0)};
  EXPECT_EQ(there_and_back(several), several);
}

TEST(SerialiseTest, BytesOfAnotherMatrixAreRefused) {
  const auto bytes = to_bytes(Eigen::MatrixXd::Random(2, 3).eval());
  EXPECT_FALSE(from_bytes<Eigen::Matrix2d>(bytes, "a matrix"));
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(from_bytes<Eigen::MatrixXd>(std::span(bytes).first(size), "a matrix")) << size;
  for (const std::int64_t many : {std::int64_t{-1}, std::int64_t{1} << 40, std::numeric_limits<std::int64_t>::max()}) {
    auto wrong = bytes;
    std::memcpy(wrong.data(), &many, sizeof many);
    EXPECT_FALSE(from_bytes<Eigen::MatrixXd>(wrong, "a matrix")) << many;
  }
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

/// As many matrix libraries have it.
struct Matrix {
  std::vector<float> numbers;
  const float* data() const { return numbers.data(); }
  std::ptrdiff_t size() const { return static_cast<std::ptrdiff_t>(numbers.size()); }
};
static_assert(std::is_same_v<travels_t<std::span<const float>>, Block<float>> && Serialisable<Block<float>>);
static_assert(!Serialisable<travels_t<std::span<float>>>, "what the callee writes would be lost");
static_assert(!std::is_constructible_v<Block<float>, std::vector<double>>);

TEST(SerialiseTest, WhatIsReadThroughASpanIsAnythingContiguous) {
  const std::vector<float> numbers{1, 2.5F, -3};
  for (const auto& bytes : {to_bytes(Block<float>(numbers)), to_bytes(Block<float>(std::span(numbers))),
                            to_bytes(Block<float>(Matrix{numbers}))}) {
    EXPECT_EQ(bytes, to_bytes(numbers)) << "a future's vector is read the same way";
    const auto block = from_bytes<Block<float>>(bytes, "argument 1");
    ASSERT_TRUE(block) << block.error().text;
    const std::span<const float> shown = *block;
    EXPECT_EQ(std::vector<float>(shown.begin(), shown.end()), numbers);
  }
  EXPECT_FALSE(from_bytes<Block<double>>(to_bytes(std::uint64_t{1} << 60), "argument 1"));
}

TEST(SerialiseTest, AnyByteMakesAValidBool) {
  const auto truth = from_bytes<bool>(Bytes{std::byte{2}}, "a bool");
  ASSERT_TRUE(truth);
  EXPECT_EQ(*truth, true);
}

}  // namespace
}  // namespace paceline::actors
