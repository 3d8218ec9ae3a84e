#include "cli/native/callee_names.h"

#include <gmock/gmock.h>

#include "actors/callee_name.h"

namespace paceline::cli {
namespace {

using actors::NameKind;

[[gnu::noinline]] int square(int x) { return x * x; }
class Store {
 public:
  [[gnu::noinline]] int add(int x) { return x + 1; }
};

std::string shown(const actors::CalleeRef& callee) { return CalleeNames().name_of({callee.kind, callee.text}); }

TEST(CalleeNamesTest, FunctionsAreFoundInTheirProgram) {
  EXPECT_EQ(shown(actors::ref_of_function(*actors::name_of(&square))), "paceline::cli::square(int)");
  EXPECT_EQ(shown(actors::ref_of_method<Store>(actors::to_bytes(*actors::name_of(&Store::add)), "")),
            "paceline::cli::Store::add(int)");
}

TEST(CalleeNamesTest, LambdasAndVirtualMethodsAreNamedByTheirTypes) {
  const auto lambda = [](int x) { return x; };
  EXPECT_THAT(shown(actors::ref_of_callable<decltype(lambda)>({}, "")), testing::HasSubstr("{lambda(int)#1}"));
  EXPECT_EQ(shown(actors::ref_of_method<Store>({}, "")), "a method of paceline::cli::Store");
  EXPECT_EQ(shown({NameKind::text, "a \x1b[1m task"}), "a ?[1m task");
}

TEST(CalleeNamesTest, WhatCannotBeFoundHasNoName) {
  const auto here = actors::ref_of_function(*actors::name_of(&square)).text;
  const auto offset = here.substr(0, here.find(' '));
  const auto path = here.substr(here.find('/'));
  const auto build = here.substr(offset.size() + 1, here.size() - offset.size() - path.size() - 2);
  EXPECT_NE(shown({NameKind::function, offset + " " + build + " " + path}), "");
  for (const auto& text :
       {offset + " 00" + build + " " + path, offset + " " + build + " /no/such", offset + " " + build + " /dev/zero",
        offset + " " + build + " /", std::string("x"), std::string("12"), std::string("12 "), std::string("12 34"),
        "ffffffffffffffff " + build + " " + path, std::string("fffffffffffffffff a b"), std::string()})
    EXPECT_EQ(shown({NameKind::function, text}), "") << text;
}

}  // namespace
}  // namespace paceline::cli
