#include "cli/tensorboard.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>

namespace paceline::cli {
namespace {

/// The records' data; what does not agree with its check sums fails the test.
std::vector<std::string> records_of(std::string_view file) {
  const auto number = [&](auto value) {
    EXPECT_GE(file.size(), sizeof value);
    std::memcpy(&value, file.data(), sizeof value);
    file.remove_prefix(sizeof value);
    return value;
  };
  const auto unmasked = [](std::uint32_t sum) { return std::rotl(sum - 0xa282ead8U, 15); };
  std::vector<std::string> records;
  while (!file.empty()) {
    const auto length_bytes = file.substr(0, 8);
    const auto length = number(std::uint64_t{});
    EXPECT_EQ(unmasked(number(std::uint32_t{})), crc32c(length_bytes));
    records.emplace_back(file.substr(0, length));
    file.remove_prefix(length);
    EXPECT_EQ(unmasked(number(std::uint32_t{})), crc32c(records.back()));
  }
  return records;
}

TEST(TensorboardTest, TheCheckSumIsCastagnolis) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283U);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aaU);
  EXPECT_EQ(crc32c(""), 0U);
}

TEST(TensorboardTest, ARecordAnEventAfterTheVersion) {
  const auto records = records_of(tensorboard_events({{"loss", -1, 300, 2, 0.5}, {"entropy", 3, 1, 0, -1}}, 0));
  ASSERT_EQ(records.size(), 3U);
  EXPECT_EQ(records[0], std::string("\x09\0\0\0\0\0\0\0\0", 9) +
                            "\x1a\x0d"
                            "brain.Event:2");
  EXPECT_EQ(records[1], std::string("\x09\0\0\0\0\0\0\0\x40", 9) +                               // Wall time 2.0.
                            "\x10\xac\x02" +                                                     // Step 300.
                            "\x2a\x0d\x0a\x0b\x0a\x04loss" + std::string("\x15\0\0\0\x3f", 5));  // 0.5.
  EXPECT_NE(records[2].find("entropy/worker-3"), std::string::npos);
}

}  // namespace
}  // namespace paceline::cli
