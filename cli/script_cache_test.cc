#include "cli/script_cache.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <thread>

#include "cli/compile.h"
#include "runtime/base/test_directory.h"

namespace paceline::cli {
namespace {

namespace fs = std::filesystem;

class ScriptCacheTest : public ::testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder / "cache"); }

  void write(const fs::path& path, const std::string& text) { std::ofstream(path) << text; }

  /// Stores a "program" that was made from header.h.
  Result<fs::path> store(const std::string& key, const std::string& content) {
    const fs::path made = sut.place_for_new("prog").value();
    write(made, content);
    write(made.string() + ".d", "prog: \\\n " + (folder / "header.h").string() + "\n");
    return sut.store(key, made);
  }

  test::TestDirectory directory;
  fs::path folder = directory.path;
  ScriptCache sut{fs::path()};
};

TEST_F(ScriptCacheTest, WhatIsStoredIsFound) {
  sut = ScriptCache(folder / "cache");
  write(folder / "header.h", "1");
  const auto stored = store("k", "program");
  ASSERT_TRUE(stored) << stored.error().text;
  EXPECT_EQ(sut.find("k", "prog"), *stored);
  EXPECT_EQ(read_file(*stored).value(), "program");
  EXPECT_FALSE(sut.find("other", "prog"));
}

TEST_F(ScriptCacheTest, AChangedHeaderMakesTheEntryStale) {
  sut = ScriptCache(folder / "cache");
  write(folder / "header.h", "1");
  ASSERT_TRUE(store("k", "old"));
  write(folder / "header.h", "2");
  EXPECT_FALSE(sut.find("k", "prog"));
  ASSERT_TRUE(store("k", "new"));
  EXPECT_EQ(read_file(sut.find("k", "prog").value()).value(), "new");
  fs::remove(folder / "header.h");
  EXPECT_FALSE(sut.find("k", "prog"));
}

TEST_F(ScriptCacheTest, HeadersOfAllSourcesCount) {
  sut = ScriptCache(folder / "cache");
  write(folder / "header.h", "1");
  write(folder / "of_another.h", "1");
  const fs::path made = sut.place_for_new("prog").value();
  write(made, "program");
  write(made.string() + ".d", "prog: " + (folder / "header.h").string() + "\n");
  write(made.parent_path() / "1.o.d", "1.o: " + (folder / "of_another.h").string() + "\n");
  ASSERT_TRUE(sut.store("k", made));
  EXPECT_TRUE(sut.find("k", "prog"));
  write(folder / "of_another.h", "2");
  EXPECT_FALSE(sut.find("k", "prog"));
}

TEST_F(ScriptCacheTest, ConcurrentStoresOfOneKeyLeaveOneWholeEntry) {
  sut = ScriptCache(folder / "cache");
  write(folder / "header.h", "1");
  std::vector<std::thread> writers;
  for (int i = 0; i < 4; ++i) {
    writers.emplace_back([this] {
      for (int k = 0; k < 10; ++k) (void)store("k", "program");
    });
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(read_file(sut.find("k", "prog").value()).value(), "program");
}

TEST_F(ScriptCacheTest, TheOldestEntriesGo) {
  sut = ScriptCache(folder / "cache");
  write(folder / "header.h", "1");
  for (std::size_t i = 0; i < ScriptCache::kEntriesMax + 3; ++i) {
    ASSERT_TRUE(store("k" + std::to_string(i), "program"));
    // Names no two entries the same age, whatever the file system's clock ticks in.
    fs::last_write_time(folder / "cache" / ("k" + std::to_string(i)),
                        fs::file_time_type::clock::now() - std::chrono::hours(1000 - i));
  }
  EXPECT_FALSE(sut.find("k0", "prog"));
  EXPECT_TRUE(sut.find("k66", "prog"));
  EXPECT_LE(std::distance(fs::directory_iterator(folder / "cache"), fs::directory_iterator()),
            static_cast<long>(ScriptCache::kEntriesMax));
}

TEST(ContentHashTest, PartsAreSeparated) {
  ContentHash a, b, c;
  a.add("ab");
  a.add("c");
  b.add("a");
  b.add("bc");
  c.add("ab");
  c.add("c");
  EXPECT_NE(a.hex(), b.hex());
  EXPECT_EQ(a.hex(), c.hex());
  EXPECT_EQ(a.hex().size(), 32u);
}

TEST(PrerequisitesTest, AMakeRuleIsRead) {
  EXPECT_EQ(prerequisites("out: a.cpp b\\ c.h \\\n  /d/e.h\n"), (std::vector<std::string>{"a.cpp", "b c.h", "/d/e.h"}));
  EXPECT_TRUE(prerequisites("").empty());
}

TEST(ScriptKeyTest, ContentCompilerAndFlagsMakeTheKey) {
  CompileSettings settings;
  settings.version = "1";
  settings.compiler = "g++";
  const auto key_of = [&](const std::vector<SourceFile>& sources, const ScriptParts& parts = {}) {
    return script_key(settings, settings.plain, sources, parts);
  };
  const std::vector<SourceFile> script = {{"/x/a.cpp", "int main() {}"}};
  const std::string key = key_of(script);
  EXPECT_EQ(key, key_of(script));
  EXPECT_NE(key, key_of({{"/x/a.cpp", "int main() { }"}}));
  EXPECT_NE(key, key_of({{"/y/a.cpp", "int main() {}"}}));
  EXPECT_NE(key, key_of(script, {{}, {"/include"}, {}, {}}));
  EXPECT_NE(key, key_of(script, {{}, {}, {}, {"m"}}));
  const std::string two = key_of({script.front(), {"/x/b.cpp", "1"}});
  EXPECT_NE(key, two);
  EXPECT_NE(two, key_of({script.front(), {"/x/b.cpp", "2"}}));
  settings.plain.defines = {"A"};
  EXPECT_NE(key, key_of(script));
  settings.plain.defines.clear();
  settings.version = "2";
  EXPECT_NE(key, key_of(script));
  EXPECT_TRUE(key.starts_with("a-"));
}

}  // namespace
}  // namespace paceline::cli
