#include "runtime/base/json.h"

#include <gtest/gtest.h>

#include <cmath>

namespace paceline {
namespace {

using nlohmann::json;

TEST(JsonTest, BytesThatAreNoUtf8BecomeJsonThatCanBeRead) {
  const auto text = json_text(json{{"name",
                                    "a\xff"
                                    "b"}});
  const auto back = parse_json(text);
  ASSERT_TRUE(back.is_object()) << text;
  EXPECT_EQ(back["name"],
            "a\xef\xbf\xbd"
            "b");
}

TEST(JsonTest, IndentsAndEscapes) {
  EXPECT_EQ(json_text(json{{"a", 1}}), R"({"a":1})");
  EXPECT_EQ(json_text(json{{"a", 1}}, 2), "{\n  \"a\": 1\n}");
  EXPECT_EQ(json_text(json("\xe2\x82\xac"), -1, true), R"("\u20ac")");
}

TEST(JsonTest, WhatIsNestedTooDeepIsDiscarded) {
  const auto nested = [](std::size_t depth, const std::string& inside = "") {
    return std::string(depth, '[') + inside + std::string(depth, ']');
  };
  EXPECT_TRUE(parse_json(nested(kJsonDepthMax)).is_array());
  EXPECT_TRUE(parse_json(nested(kJsonDepthMax, R"("[[[\\\"[[[")")).is_array()) << "brackets in a text nest nothing";
  EXPECT_TRUE(parse_json(nested(kJsonDepthMax + 1)).is_discarded());
  EXPECT_TRUE(parse_json(nested(5'000'000)).is_discarded());
}

TEST(JsonTest, WhatIsNoJsonIsDiscardedAndThrowsNothing) {
  for (const char* const text : {"", "{", "nul", "{\"a\":}", "\xff"}) EXPECT_FALSE(parse_json(text).is_object());
}

}  // namespace
}  // namespace paceline
