#include "runtime/base/content_hash.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>

#include "runtime/base/test_directory.h"

namespace paceline {
namespace {

std::string hash_of(std::string_view text) {
  ContentHash hash;
  hash.add(text);
  return hash.hex();
}

TEST(ContentHashTest, EveryByteAndEveryLengthCounts) {
  std::set<std::string> seen;
  std::string text(37, '\0');
  for (std::size_t length = 0; length <= text.size(); ++length) seen.insert(hash_of(text.substr(0, length)));
  EXPECT_EQ(seen.size(), 38u);
  for (char& c : text) {
    c = 1;
    EXPECT_TRUE(seen.insert(hash_of(text)).second);
    c = 0;
  }
  EXPECT_EQ(hash_of(text).size(), 32u);
}

TEST(ContentHashTest, PartsAreKeptApart) {
  ContentHash one, other;
  one.add("ab");
  one.add("c");
  other.add("a");
  other.add("bc");
  EXPECT_NE(one.hex(), other.hex());
}

TEST(ContentHashTest, AFolderIsTheNamesSizesAndTimesOfItsFiles) {
  const test::TestDirectory directory;
  const auto path = [&](const char* name) { return (directory.path / name).string(); };
  const auto hash = [&] { return hash_of_folder(directory.path).value_or("none"); };
  for (const char* name : {"a", "b"}) std::ofstream(path(name)) << "x";
  std::filesystem::create_directory(path("folder"));
  const auto before = hash();
  EXPECT_EQ(hash(), before);
  const auto written = std::filesystem::last_write_time(path("a"));
  std::ofstream(path("a")) << "xx";
  std::filesystem::last_write_time(path("a"), written);
  const auto larger = hash();
  EXPECT_NE(larger, before);
  std::filesystem::last_write_time(path("a"), written + std::chrono::seconds(1));
  const auto later = hash();
  EXPECT_NE(later, larger);
  std::filesystem::rename(path("b"), path("c"));
  EXPECT_NE(hash(), later);
  EXPECT_FALSE(hash_of_folder(path("nowhere")));
}

TEST(ContentHashTest, AFileIsOnePart) {
  const std::string path = "content_hash_test.bin";
  for (const std::size_t size : {0u, 5u, (1u << 20) - 1, 1u << 20, (1u << 20) + 13, 3u << 20}) {
    std::string text(size, 'x');
    for (std::size_t i = 0; i < size; i += 97) text[i] = static_cast<char>(i);
    std::ofstream(path, std::ios::binary) << text;
    EXPECT_EQ(hash_of_file(path).value_or("none"), hash_of(text)) << size;
  }
  std::remove(path.c_str());
  EXPECT_FALSE(hash_of_file(path));
}

}  // namespace
}  // namespace paceline
