#include "algorithms/train/idx.h"

#include <gtest/gtest.h>
#include <zlib.h>
#include <filesystem>
#include <fstream>

#include "algorithms/train/blas_check.h"
#include "algorithms/train/fashion_mnist.h"
#include "runtime/base/test_directory.h"

namespace paceline::train {
namespace {

class IdxTest : public ::testing::Test {
 protected:
  ~IdxTest() override { ::unsetenv("PACELINE_DATA"); }
  std::string gz(const std::string& name, const std::string& bytes) const {
    const std::string path = directory_ + "/" + name;
    gzFile file = gzopen(path.c_str(), "wb");
    gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
    gzclose(file);
    return path;
  }
  static std::string header(std::initializer_list<unsigned> extents) {
    std::string bytes{'\0', '\0', '\x08', static_cast<char>(extents.size())};
    for (const unsigned extent : extents) {
      for (const int shift : {24, 16, 8, 0}) bytes.push_back(static_cast<char>(extent >> shift & 0xff));
    }
    return bytes;
  }
  void expect_refused(const std::string& path, const std::string& why) const {
    std::vector<std::uint8_t> out(6);
    const auto read = read_idx(path, {{2, 3}}, out);
    ASSERT_FALSE(read) << why;
    EXPECT_NE(read.error().text.find(why), std::string::npos) << read.error().text;
  }
  test::TestDirectory own_;
  std::string directory_ = own_.path;
};

TEST_F(IdxTest, ReadsBytesInOrder) {
  std::vector<std::uint8_t> out(6);
  ASSERT_TRUE(read_idx(gz("a.gz", header({2, 3}) + "\x01\x02\x03\x04\x05\xff"), {{2, 3}}, out));
  EXPECT_EQ(out, (std::vector<std::uint8_t>{1, 2, 3, 4, 5, 255}));
}

TEST_F(IdxTest, WhateverDoesNotFitIsRefused) {
  expect_refused(gz("shape.gz", header({3, 2}) + "abcdef"), "expected 2x3");
  expect_refused(gz("dims.gz", header({6}) + "abcdef"), "expected 2x3");
  expect_refused(gz("short.gz", header({2, 3}) + "abcde"), "cut off");
  expect_refused(gz("long.gz", header({2, 3}) + "abcdefg"), "after the last");
  expect_refused(gz("header.gz", header({2, 3}).substr(0, 9)), "header is cut off");
  expect_refused(gz("magic.gz", "hello, this is no IDX"), "not an IDX");
  expect_refused(gz("empty.gz", ""), "not an IDX");
}

TEST_F(IdxTest, ADamagedArchiveIsRefused) {
  const auto path = gz("a.gz", header({2, 3}) + "abcdef");
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 6);
  expect_refused(path, "");
}

TEST_F(IdxTest, AMissingFileIsNotFound) {
  std::vector<std::uint8_t> out(6);
  const auto read = read_idx(directory_ + "/no.gz", {{2, 3}}, out);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().kind, ErrorKind::not_found);
}

TEST_F(IdxTest, AMissingDataSetNamesThePackage) {
  ::setenv("PACELINE_DATA", directory_.c_str(), 1);
  const auto found = fashion_mnist_directory();
  ASSERT_FALSE(found);
  EXPECT_NE(found.error().text.find("apt install dataset-fashion-mnist"), std::string::npos);
}

TEST_F(IdxTest, LabelsBeyondTheClassesAreRefused) {
  gz("train-images-idx3-ubyte.gz", header({1, 28, 28}) + std::string(784, '\0'));
  gz("train-labels-idx1-ubyte.gz", header({1}) + "\x0a");
  std::vector<std::uint8_t> bytes(785);
  ::setenv("PACELINE_DATA", directory_.c_str(), 1);
  EXPECT_EQ(fashion_mnist_directory().value(), directory_);
  const auto read = read_fashion_mnist(directory_, true, bytes);
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().text.find("larger than 9"), std::string::npos);
}

TEST(BlasCheckTest, OnlyTheReferenceLibraryIsWarnedAbout) {
  EXPECT_TRUE(slow_blas_in("7f r-xp /usr/lib/x86_64-linux-gnu/blas/libblas.so.3.11.0\n"));
  EXPECT_FALSE(slow_blas_in("7f r-xp /usr/lib/x86_64-linux-gnu/openblas-pthread/libblas.so.3\n"));
  EXPECT_FALSE(slow_blas_in("7f r-xp /opt/torch/lib/libtorch_cpu.so\n"));
}

}  // namespace
}  // namespace paceline::train
