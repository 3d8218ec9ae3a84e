#include "algorithms/train/csv.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "runtime/base/test_directory.h"

namespace paceline::train {
namespace {

class CsvTest : public ::testing::Test {
 protected:
  std::string write(const std::string& text) const {
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  /// All numbers, or what is wrong.
  std::vector<float> read(const std::string& text, const CsvColumns& columns = {}) {
    write(text);
    error.clear();
    const auto table = look_at_csv(path, columns);
    if (!table) error = table.error().text;
    if (!table) return {};
    std::vector<float> numbers(static_cast<std::size_t>(table->rows) * table->chosen.size());
    const auto done = read_csv(path, columns, *table, numbers);
    if (!done) error = done.error().text;
    return done ? numbers : std::vector<float>{};
  }
  void expect_refused(const std::string& text, const std::string& why, const CsvColumns& columns = {}) {
    read(text, columns);
    EXPECT_NE(error.find(why), std::string::npos) << text << "\n" << error;
  }

  test::TestDirectory directory;
  std::string path = (directory.path / "table.csv").string();
  std::string error;
};

using Numbers = std::vector<float>;

TEST_F(CsvTest, TheLastColumnIsTheTarget) {
  EXPECT_EQ(read("1,2,3\n4,5,6\n"), (Numbers{1, 2, 3, 4, 5, 6})) << error;
  EXPECT_EQ(read("a,b\n1,2\n"), (Numbers{1, 2})) << error;
}

TEST_F(CsvTest, AnotherFileOfAsManyRowsIsNotTheOneThatWasCounted) {
  const auto table = *look_at_csv(write("1,2\n3,4\n"), {});
  Numbers numbers(4);
  ASSERT_TRUE(read_csv(path, {}, table, numbers));
  write("5,6\n7,8\n");
  std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now() + std::chrono::seconds(1));
  const auto again = read_csv(path, {}, table, numbers);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().text, path + " has changed while it was read");
}

TEST_F(CsvTest, ColumnsAreChosenByNameOrNumber) {
  const std::string text = "age,\"height\",weight\n30,1.8,80\n40,1.7,70\n";
  EXPECT_EQ(read(text, {.target = "age"}), (Numbers{1.8F, 80, 30, 1.7F, 70, 40})) << error;
  EXPECT_EQ(read(text, {.target = "height", .columns = {"weight"}}), (Numbers{80, 1.8F, 70, 1.7F})) << error;
  EXPECT_EQ(read("1,2,3\n", {.target = "0"}), (Numbers{2, 3, 1})) << error;
}

TEST_F(CsvTest, BlanksQuotesAndOtherEndsOfLinesAreRead) {
  EXPECT_EQ(read(" 1 ;\"2\"; +3\r\n\r\n-4;5e-1;.5\r\n\n", {.separator = ';'}), (Numbers{1, 2, 3, -4, 0.5F, 0.5F}))
      << error;
  EXPECT_EQ(read("1,2"), (Numbers{1, 2})) << "without the last line's end; " << error;
}

TEST_F(CsvTest, WhatIsWrongIsNamedWithItsLine) {
  expect_refused("a,b\n1,2\n1,x\n", "line 3: 'x' in column 'b' is no number");
  expect_refused("1,2\n1,\n", "line 2: '' in column 1 is no number");
  expect_refused("1,2\n1,nan\n", "'nan'");
  expect_refused("1,2\n1,2,3\n", "line 2: 3 cells, not 2");
  expect_refused("1,2\n1\n", "line 2: 1 cells, not 2");
  expect_refused("", "no rows");
  expect_refused("a,b\n\n", "no rows");
  expect_refused("1\n2\n", "one column only");
  expect_refused("a,b\n1,2\n", "there is no column 'c': there are a, b", {.target = "c"});
  expect_refused("1,2\n", "there is no column '2': there are 2, from 0", {.target = "2"});
  EXPECT_FALSE(look_at_csv((directory.path / "nowhere.csv").string(), {}));
}

TEST_F(CsvTest, AFileThatChangesMeanwhileIsRefused) {
  const auto table = look_at_csv(write("1,2\n3,4\n"), {}).value();
  Numbers numbers(4);
  for (const char* now : {"1,2\n", "1,2\n3,4\n5,6\n"}) {
    const auto done = read_csv(write(now), {}, table, numbers);
    ASSERT_FALSE(done);
    EXPECT_NE(done.error().text.find("changed"), std::string::npos);
  }
}

}  // namespace
}  // namespace paceline::train
