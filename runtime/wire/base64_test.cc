#include "runtime/wire/base64.h"

#include <gtest/gtest.h>

namespace paceline::wire {
namespace {

TEST(Base64Test, BytesComeBack) {
  std::string bytes;
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(from_base64(to_base64(bytes)), bytes) << i;
    bytes.push_back(static_cast<char>(i * 37));
  }
  EXPECT_EQ(to_base64("any carnal pleas"), "YW55IGNhcm5hbCBwbGVhcw==");
  EXPECT_EQ(to_base64(bytes).find('\n'), std::string::npos);
}

TEST(Base64Test, WhatIsNoneIsNothing) {
  EXPECT_EQ(from_base64("YW55%%%%"), "");
  EXPECT_EQ(from_base64("\xff\xfe"), "");
  EXPECT_EQ(from_base64(""), "");
}

}  // namespace
}  // namespace paceline::wire
