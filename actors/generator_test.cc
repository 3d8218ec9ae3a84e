#include "actors/generator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace paceline {
namespace {

Generator<int> up_to(int last, int* reached = nullptr) {
  for (int i = 1; i <= last; ++i) {
    if (reached != nullptr) *reached = i;
    co_yield i;
  }
}

Generator<std::unique_ptr<std::string>> pointers() {
  co_yield std::make_unique<std::string>("a");
  auto named = std::make_unique<std::string>("b");
  co_yield std::move(named);
}

Generator<int> fails_after(int values) {
  for (const int value : up_to(values)) co_yield value;
  throw std::runtime_error("no more");
}

TEST(GeneratorTest, IsARangeOfItsValues) {
  std::vector<int> values;
  for (const int value : up_to(3)) values.push_back(value);
  EXPECT_THAT(values, testing::ElementsAre(1, 2, 3));
  for (const int value : up_to(0)) FAIL() << value;
}

TEST(GeneratorTest, NothingIsComputedBeforeItIsWanted) {
  int reached = 0;
  auto values = up_to(10, &reached);
  EXPECT_EQ(reached, 0);
  EXPECT_EQ(*values.next(), 1);
  EXPECT_EQ(*values.next(), 2);
  EXPECT_EQ(reached, 2);
}

TEST(GeneratorTest, ValuesAreMovedOut) {
  auto values = pointers();
  const auto first = std::move(*values.next());
  EXPECT_EQ(*first, "a");
  EXPECT_EQ(**values.next(), "b");
  EXPECT_EQ(values.next(), nullptr);
  EXPECT_EQ(values.next(), nullptr);
}

TEST(GeneratorTest, WhatItThrowsComesBehindItsValues) {
  auto values = fails_after(2);
  EXPECT_EQ(*values.next(), 1);
  EXPECT_EQ(*values.next(), 2);
  EXPECT_THROW(values.next(), std::runtime_error);
  EXPECT_EQ(values.next(), nullptr);
}

}  // namespace
}  // namespace paceline
