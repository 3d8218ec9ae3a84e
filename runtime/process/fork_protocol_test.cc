#include "runtime/process/fork_protocol.h"

#include <gtest/gtest.h>

#include <random>

#include "runtime/process/fd_passing.h"

namespace paceline::process {
namespace {

ForkMessage full_message() {
  return {.kind = ForkMessage::Kind::fork,
          .worker = WorkerId(0x100000002),
          .pid = 77,
          .exit = {.signalled = true, .code = 9},
          .text = "/a/log",
          .env = {{"A", "1"}, {"B", ""}}};
}

TEST(ForkProtocolTest, EveryFieldSurvivesTheWay) {
  const auto bytes = encode(full_message());
  ASSERT_TRUE(bytes);
  const auto decoded = decode_fork_message(*bytes);
  ASSERT_TRUE(decoded) << decoded.error().text;
  EXPECT_EQ(*decoded, full_message());
}

TEST(ForkProtocolTest, EveryCutAndEveryExtensionIsRefused) {
  const auto bytes = encode(full_message());
  for (std::size_t size = 0; size < bytes->size(); ++size)
    EXPECT_FALSE(decode_fork_message(bytes->substr(0, size))) << size;
  EXPECT_FALSE(decode_fork_message(*bytes + "x"));
}

TEST(ForkProtocolTest, OtherVersionNamesTheMend) {
  auto bytes = *encode(full_message());
  ++bytes[4];
  EXPECT_NE(decode_fork_message(bytes).error().text.find("compile the actor script against this version"),
            std::string::npos);
}

TEST(ForkProtocolTest, DamagedBytesNeverDecodeBeyondTheBounds) {
  std::mt19937 random(1);
  const std::string good = *encode(full_message());
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes = good;
    for (int k = 0; k < 3; ++k) bytes[random() % bytes.size()] = static_cast<char>(random());
    if (const auto decoded = decode_fork_message(bytes)) {
      EXPECT_LE(decoded->env.size(), kForkEnvMax);
      EXPECT_LE(decoded->text.size(), bytes.size());
    }
  }
}

TEST(ForkProtocolTest, VariablesThatAnEnvironmentCannotHoldAreRefused) {
  for (const auto& variable :
       std::vector<std::pair<std::string, std::string>>{{"", "x"}, {"A=B", "x"}, {"A", std::string("x\0y", 3)}}) {
    ForkMessage message = full_message();
    message.env = {variable};
    EXPECT_EQ(encode(message).error().kind, ErrorKind::invalid);
  }
  ForkMessage many = full_message();
  many.env.assign(kForkEnvMax + 1, {"A", "1"});
  EXPECT_EQ(encode(many).error().kind, ErrorKind::invalid);
  ForkMessage large = full_message();
  large.env = {{"A", std::string(kPacketBytesMax, 'x')}};
  EXPECT_EQ(encode(large).error().kind, ErrorKind::invalid);
}

}  // namespace
}  // namespace paceline::process
