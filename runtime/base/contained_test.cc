#include "runtime/base/contained.h"

#include <gtest/gtest.h>

#include <new>
#include <stdexcept>
#include <string>

#include "runtime/base/json.h"

namespace paceline {
namespace {

TEST(ContainedTest, WhatGoesWellIsReturnedAsItIs) {
  bool called = false;
  EXPECT_TRUE(contained([&] { called = true; }));
  EXPECT_TRUE(called);
  EXPECT_TRUE(contained([]() -> Result<void> { return {}; }));
  const auto refused = contained([]() -> Result<void> { return fail(ErrorKind::stale, "late"); });
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::stale);
}

TEST(ContainedTest, WhatIsThrownBecomesAnError) {
  const auto boom = contained([] {
    throw std::runtime_error(
        "b\xff"
        "om");
  });
  ASSERT_FALSE(boom);
  EXPECT_EQ(boom.error().kind, ErrorKind::invalid);
  EXPECT_EQ(boom.error().text,
            "b\xef\xbf\xbd"
            "om");

  EXPECT_EQ(contained([] { throw std::bad_alloc(); }).error().kind, ErrorKind::overloaded);
  EXPECT_EQ(contained([] { throw 7; }).error().text, "an unknown exception");
}

TEST(ContainedTest, AFieldOfAnotherKindSaysWhichKinds) {
  const auto wrong = contained([] { (void)nlohmann::json{{"workers", "two"}}.value("workers", 1); });
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().kind, ErrorKind::invalid);
  EXPECT_EQ(wrong.error().text, "a field of another kind than it has to be: type must be number, but is string");
}

}  // namespace
}  // namespace paceline
