#include "algorithms/train/safetensors.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <array>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "runtime/base/test_directory.h"

namespace paceline::train {
namespace {

class SafetensorsTest : public ::testing::Test {
 protected:
  std::vector<std::byte> encoded() const {
    Safetensors content;
    content.metadata = {{"update", "17"}, {"strategy", "wagma(group=2)"}};
    content.tensors.push_back({"conv1.weight", TensorType::f32, {2, 3}, std::as_bytes(std::span(weights_))});
    content.tensors.push_back({"step", TensorType::i64, {}, std::as_bytes(std::span(&step_, 1))});
    content.tensors.push_back({"none", TensorType::u8, {0}, {}});
    return encode_safetensors(content).value();
  }
  /// A file with this header and `data` zero bytes behind it.
  static std::vector<std::byte> with_header(const std::string& header, std::size_t data) {
    std::vector<std::byte> bytes(8 + header.size() + data);
    const std::uint64_t length = header.size();
    std::memcpy(bytes.data(), &length, 8);
    std::memcpy(bytes.data() + 8, header.data(), header.size());
    return bytes;
  }
  static void expect_refused(const std::string& header, std::size_t data, const std::string& why) {
    const auto bytes = with_header(header, data);
    const auto decoded = decode_safetensors(bytes);
    ASSERT_FALSE(decoded) << header;
    EXPECT_NE(decoded.error().text.find(why), std::string::npos) << decoded.error().text;
  }

  const std::array<float, 6> weights_{1, 2, 3, 4, 5, 6};
  const std::int64_t step_ = -42;
};

TEST_F(SafetensorsTest, ReadsBackWhatItWrote) {
  const auto bytes = encoded();
  const auto content = decode_safetensors(bytes);
  ASSERT_TRUE(content) << content.error().text;
  EXPECT_EQ(content->metadata.at("strategy"), "wagma(group=2)");
  ASSERT_EQ(content->tensors.size(), 3U);
  const auto* weight = content->find("conv1.weight");
  ASSERT_NE(weight, nullptr);
  EXPECT_EQ(weight->shape, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(std::memcmp(weight->bytes.data(), weights_.data(), sizeof weights_), 0);
  EXPECT_EQ(std::memcmp(content->find("step")->bytes.data(), &step_, sizeof step_), 0);
  EXPECT_EQ(content->find("bias"), nullptr);
}

TEST_F(SafetensorsTest, DataIsAlignedToEightBytes) {
  const auto bytes = encoded();
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  EXPECT_EQ(length % 8, 0U);
}

TEST_F(SafetensorsTest, EveryCutIsNoticed) {
  const auto bytes = encoded();
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(decode_safetensors(std::span(bytes).first(size))) << size;
  auto longer = bytes;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(decode_safetensors(longer));
}

TEST_F(SafetensorsTest, BadHeadersAreRefusedByName) {
  expect_refused("[]", 0, "not a JSON object");
  expect_refused("{", 0, "not a JSON object");
  expect_refused(R"({"w":{"dtype":"F99","shape":[1],"data_offsets":[0,4]}})", 4, "unknown dtype");
  expect_refused(R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4, "do not fit its shape");
  expect_refused(R"({"w":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4, "bad shape");
  expect_refused(R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", 4, "do not fit its shape");
  expect_refused(R"({"w":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}})", 0,
                 "do not fit its shape");
  expect_refused(R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 8, "hole");
  expect_refused(
      R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
      8, "overlaps");
  expect_refused(R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 2, "beyond");
  expect_refused(
      R"({"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"w":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})", 2,
      "twice");
  expect_refused(R"({"__metadata__":{"n":1}})", 0, "not a text");
}

TEST_F(SafetensorsTest, RefusesToWriteWhatDoesNotFit) {
  Safetensors content;
  content.tensors.push_back({"w", TensorType::f32, {7}, std::as_bytes(std::span(weights_))});
  EXPECT_FALSE(encode_safetensors(content));
  content.tensors = {{"w", TensorType::f32, {6}, std::as_bytes(std::span(weights_))},
                     {"w", TensorType::f32, {6}, std::as_bytes(std::span(weights_))}};
  EXPECT_FALSE(encode_safetensors(content));
}

class AtomicWriteTest : public ::testing::Test {
 protected:
  std::string content() const {
    std::ifstream file(path_);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::ptrdiff_t files() const { return std::distance(std::filesystem::directory_iterator(directory_), {}); }
  static std::span<const std::byte> bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

  test::TestDirectory own_;
  std::string directory_ = own_.path;
  std::string path_ = directory_ + "/checkpoint";
};

TEST_F(AtomicWriteTest, ReplacesTheOldFile) {
  ASSERT_TRUE(write_file_atomically(path_, bytes("old")));
  ASSERT_TRUE(write_file_atomically(path_, bytes("new")));
  EXPECT_EQ(content(), "new");
  EXPECT_EQ(files(), 1);
  EXPECT_EQ(read_whole_file(path_, 3).value().size(), 3U);
  EXPECT_FALSE(read_whole_file(path_, 2));
}

TEST_F(AtomicWriteTest, WhenThereIsNoRoomTheOldFileStaysWholeAndNothingIsLeft) {
  ASSERT_TRUE(write_file_atomically(path_, bytes("old")));
  struct rlimit before {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const struct rlimit small { 4096, before.rlim_max };
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto written = write_file_atomically(path_, bytes(std::string(100'000, 'x')));
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  ASSERT_FALSE(written);
  EXPECT_NE(written.error().text.find(path_), std::string::npos);
  EXPECT_EQ(content(), "old");
  EXPECT_EQ(files(), 1);
}

TEST_F(AtomicWriteTest, AMissingFolderIsNamed) {
  const auto written = write_file_atomically(directory_ + "/no/checkpoint", bytes("x"));
  ASSERT_FALSE(written);
  EXPECT_NE(written.error().text.find("/no/checkpoint"), std::string::npos);
}

}  // namespace
}  // namespace paceline::train
