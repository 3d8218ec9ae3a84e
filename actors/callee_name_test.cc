#include "actors/callee_name.h"

#include <gmock/gmock.h>

#include <vector>

namespace paceline::actors {
namespace {

[[gnu::noinline]] int twice(int x) { return 2 * x; }
template <class T>
[[gnu::noinline]] T same(T x) {
  return x;
}

class Store {
 public:
  virtual ~Store() = default;
  [[gnu::noinline]] int add(const std::vector<int>& numbers) { return static_cast<int>(numbers.size()); }
  virtual int virtually() { return 1; }
};

std::string named(int (*function)(int)) { return name_of_callable<int (*)(int)>(to_bytes(*name_of(function)), ""); }

template <class Method>
std::string method(Method given, bool without_build) {
  auto name = *name_of(given);
  const auto build = name.function.build;
  if (without_build) name.function.build.clear();
  return name_of_method<Store>(to_bytes(name), build);
}

TEST(CalleeNameTest, FunctionsAreCalledAsInCpp) {
  EXPECT_EQ(named(twice), "paceline::actors::twice(int)");
  EXPECT_THAT(named(same<int>), testing::HasSubstr("same<int>(int)"));
  EXPECT_EQ(named(twice), "paceline::actors::twice(int)");  // Known by now.
}

TEST(CalleeNameTest, MethodsAreCalledAsInCpp) {
  EXPECT_THAT(method(&Store::add, true), testing::StartsWith("paceline::actors::Store::add(std::vector<int"));
  EXPECT_EQ(method(&Store::add, false), method(&Store::add, true));
  EXPECT_EQ(method(&Store::virtually, false), "a method of paceline::actors::Store");
}

TEST(CalleeNameTest, LambdasAreCalledByWhereTheyStand) {
  const auto lambda = [](int x) { return x; };
  EXPECT_THAT((name_of_callable<std::remove_const_t<decltype(lambda)>>({}, "")), testing::HasSubstr("{lambda(int)#1}"));
}

TEST(CalleeNameTest, WhatIsNoFunctionHasNoName) {
  EXPECT_EQ(function_name({"abc", 1}), "");
  EXPECT_EQ(function_name({*executable_build(), 1}), "");
  EXPECT_EQ((name_of_callable<int (*)(int)>(Bytes(3), "")), "");
  EXPECT_EQ(name_of_method<Store>({}, ""), "a method of paceline::actors::Store");
}

}  // namespace
}  // namespace paceline::actors
