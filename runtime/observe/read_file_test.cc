#include "runtime/observe/read_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <vector>

#include "runtime/base/test_directory.h"

namespace paceline::observe {
namespace {

class ReadFileTest : public ::testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& text) {
    std::string path = directory_.path / name;
    std::ofstream(path) << text;
    return path;
  }
  std::vector<std::string> lines(const std::string& path) {
    std::vector<std::string> lines;
    const auto read = read_lines(
        path, [&](std::string_view line, bool whole) { lines.push_back(std::string(line) + (whole ? "|" : "")); });
    EXPECT_TRUE(read) << read.error().text;
    return lines;
  }

  test::TestDirectory directory_;
};

TEST_F(ReadFileTest, AWholeFileOrItsLines) {
  const std::string path = file("a", "one\n\nthree\nhalf");
  EXPECT_EQ(*read_file(path, 100), "one\n\nthree\nhalf");
  EXPECT_EQ(lines(path), (std::vector<std::string>{"one|", "|", "three|", "half"}));
  EXPECT_EQ(*read_file(file("empty", ""), 0), "");
  EXPECT_TRUE(lines(file("empty", "")).empty());
  const std::string large(200'000, 'x');  // More than is read at once.
  EXPECT_EQ(lines(file("large", large + "\n" + large)), (std::vector<std::string>{large + "|", large}));
}

TEST_F(ReadFileTest, WhatIsTooLargeIsRefusedAndNotRead) {
  const std::string path = file("a", std::string(101, 'x'));
  EXPECT_EQ(read_file(path, 101)->size(), 101u);
  EXPECT_EQ(read_file(path, 100).error().kind, ErrorKind::invalid);
  const std::string sparse = file("sparse", "");
  ASSERT_EQ(::truncate(sparse.c_str(), off_t{1} << 40), 0);
  EXPECT_EQ(read_file(sparse, kJsonBytesMax).error().kind, ErrorKind::invalid);
  EXPECT_EQ(read_lines(sparse, [](std::string_view, bool) {}).error().kind, ErrorKind::invalid);
}

TEST_F(ReadFileTest, NothingButARegularFileIsRead) {
  const std::string pipe = directory_.path / "pipe", loop = directory_.path / "loop";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  ASSERT_EQ(::symlink(loop.c_str(), loop.c_str()), 0);
  for (const std::string& path : {pipe, std::string("/dev/zero"), std::string(directory_.path)})
    EXPECT_EQ(read_file(path, 100).error().text, path + " is no regular file");
  EXPECT_FALSE(read_file(loop, 100));
  EXPECT_EQ(read_file(directory_.path / "missing", 100).error().kind, ErrorKind::not_found);
}

}  // namespace
}  // namespace paceline::observe
