#include "runtime/base/readable.h"

#include <gtest/gtest.h>

namespace paceline {
namespace {

constexpr const char* kReplacement = "\xef\xbf\xbd";  // U+FFFD.

TEST(ReadableTest, WhatIsReadableStaysAsItIs) {
  for (const char* const text :
       {"", "plain", "two\nlines\tand a tab", "Zeiger f\xc3\xbcr 8 \xe2\x82\xac", "\xf0\x9f\x9a\x80"})
    EXPECT_EQ(readable(text), text);
}

TEST(ReadableTest, BytesThatAreNoUtf8AreReplaced) {
  EXPECT_EQ(readable("a\xff"
                     "b"),
            std::string("a") + kReplacement + "b");
  EXPECT_EQ(readable("cut \xe2\x82"), std::string("cut ") + kReplacement);
  for (const char* const bad : {"\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\x80", "\xf8\x88\x80\x80\x80"}) {
    const auto text = readable(bad);
    EXPECT_NE(text.find(kReplacement), std::string::npos) << "overlong, a surrogate, beyond U+10FFFF, a continuation";
    EXPECT_EQ(readable(text), text);
  }
}

TEST(ReadableTest, ATerminalObeysNoneOfIt) {
  EXPECT_EQ(readable("\x1b[2Jgone\r\x07"), "?[2Jgone??");
  EXPECT_EQ(readable(std::string_view("a\0b", 3)), "a?b");
  EXPECT_EQ(readable("\xc2\x9b"
                     "31m"),
            "?31m")
      << "an 8-bit control sequence";
  EXPECT_EQ(readable("\x7f"), "?");
}

TEST(ReadableTest, EveryByteAndPairOfBytesBecomesReadable) {
  for (int first = 0; first < 256; ++first)
    for (int second = 0; second < 256; ++second) {
      const std::string text{static_cast<char>(first), static_cast<char>(second)};
      const auto once = readable(text);
      ASSERT_EQ(readable(once), once) << first << " " << second;
    }
}

TEST(ReadableTest, CutsBetweenCharacters) {
  const std::string euros = "\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac";
  EXPECT_EQ(first_of(euros, 9), euros);
  EXPECT_EQ(first_of(euros, 8), euros.substr(0, 6));
  EXPECT_EQ(first_of(euros, 6), euros.substr(0, 6));
  EXPECT_EQ(first_of(euros, 2), "");
  EXPECT_EQ(last_of(euros, 9), euros);
  EXPECT_EQ(last_of(euros, 8), euros.substr(3));
  EXPECT_EQ(last_of(euros, 3), euros.substr(6));
  EXPECT_EQ(last_of(euros, 1), "");
  EXPECT_EQ(first_of("abc", 2), "ab");
  EXPECT_EQ(last_of("abc", 2), "bc");
}

TEST(ReadableTest, OfBytesThatAreNoUtf8NotMoreThanACharacterIsCut) {
  const std::string bad(100, '\x80');
  EXPECT_GE(first_of(bad, 50).size(), 47U);
  EXPECT_GE(last_of(bad, 50).size(), 47U);
}

}  // namespace
}  // namespace paceline
