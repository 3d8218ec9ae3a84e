#include <gtest/gtest.h>
#include <sys/stat.h>

#include <set>

#include "runtime/observe/atomic_file.h"
#include "runtime/observe/line_file.h"
#include "runtime/observe/log.h"
#include "runtime/observe/observe_test_support.h"
#include "runtime/observe/run_directory.h"

namespace paceline::observe {
namespace {

using namespace std::chrono_literals;

class AtomicFileTest : public FolderTest {};

TEST_F(AtomicFileTest, ReplacesTheOldFileAtCommitOnly) {
  const std::string path = folder + "/a.json";
  ASSERT_TRUE(write_json_atomic(path, "old"));
  {
    auto file = AtomicFile::create(path);
    ASSERT_TRUE(file);
    ASSERT_TRUE(file->write(std::string(1'000'000, 'x')));
    EXPECT_EQ(text_of(path), "old");
    EXPECT_EQ(files(), 2u);
  }
  EXPECT_EQ(text_of(path), "old");
  EXPECT_EQ(files(), 1u);  // Not committed: gone.
  ASSERT_TRUE(write_json_atomic(path, "new"));
  EXPECT_EQ(text_of(path), "new");
  EXPECT_EQ(files(), 1u);
}

TEST_F(AtomicFileTest, FullDiskLeavesTheOldFileWholeAndNothingElse) {
  const std::string path = folder + "/a.json";
  ASSERT_TRUE(write_json_atomic(path, "old"));
  for (const std::size_t size : {std::size_t{5'000}, std::size_t{2'000'000}})  // Fails at commit; fails while writing.
    EXPECT_TRUE(with_full_disk(4096, [&] {
      const auto written = write_json_atomic(path, std::string(size, 'x'));
      return !written && written.error().text.find("write " + path + ": File too large; an older file") == 0;
    }));
  EXPECT_EQ(text_of(path), "old");
  EXPECT_EQ(files(), 1u);
}

TEST_F(AtomicFileTest, MissingFolderIsNamed) {
  const auto written = write_json_atomic(folder + "/no/a.json", "x");
  ASSERT_FALSE(written);
  EXPECT_NE(written.error().text.find(folder + "/no/a.json"), std::string::npos);
}

class LineFileTest : public FolderTest {};

TEST_F(LineFileTest, FlushesWhenASecondHasPassedAndAtTheEnd) {
  const std::string path = folder + "/metrics.jsonl";
  {
    auto file = LineFile::open(path);
    ASSERT_TRUE(file);
    ASSERT_TRUE(file->append("1", Instant(10s)));
    ASSERT_TRUE(file->append("2", Instant(10s + 999ms)));
    EXPECT_EQ(text_of(path), "");
    ASSERT_TRUE(file->append("3", Instant(11s)));
    EXPECT_EQ(text_of(path), "1\n2\n3\n");
    ASSERT_TRUE(file->append("4", Instant(11s)));
  }
  EXPECT_EQ(text_of(path), "1\n2\n3\n4\n");
}

TEST_F(LineFileTest, FullDiskIsToldOnceAndDoesNotStopTheCaller) {
  auto file = LineFile::open("/dev/full");
  ASSERT_TRUE(file);
  ASSERT_TRUE(file->append("1", Instant(0s)));
  const auto told = file->append("2", Instant(1s));
  ASSERT_FALSE(told);
  EXPECT_EQ(told.error().text,
            "write /dev/full: No space left on device: nothing more is written there; the run goes on");
  EXPECT_TRUE(file->append("3", Instant(2s)));
  EXPECT_TRUE(file->flush());
}

class RunDirectoryTest : public FolderTest {};

TEST_F(RunDirectoryTest, RunsOfOneSecondGetFoldersOfTheirOwn) {
  const auto now = std::chrono::system_clock::now();
  std::set<std::string> paths;
  for (int i = 0; i < 3; ++i) {
    const auto run = RunDirectory::create(folder + "/deep/runs", "fashion mnist/../x", now);
    ASSERT_TRUE(run) << run.error().text;
    EXPECT_TRUE(std::filesystem::is_directory(run->logs()));
    paths.insert(run->path());
  }
  ASSERT_EQ(paths.size(), 3u);
  const std::string& first = *paths.begin();
  EXPECT_TRUE(first.ends_with("-fashion_mnist_.._x")) << first;
  EXPECT_TRUE(paths.contains(first + "-2"));
  EXPECT_TRUE(paths.contains(first + "-3"));
}

TEST_F(RunDirectoryTest, BaseThatIsAFileIsAnErrorThatNamesIt) {
  std::ofstream(folder + "/file") << "x";
  const auto run = RunDirectory::create(folder + "/file", "job", {});
  ASSERT_FALSE(run);
  EXPECT_NE(run.error().text.find(folder + "/file"), std::string::npos);
}

class LogTest : public FolderTest {
 protected:
  void TearDown() override {
    ::unsetenv("PACELINE_LOG");
    FolderTest::TearDown();
  }
};

TEST_F(LogTest, WritesTheLevelsThatTheEnvironmentAsksFor) {
  ::setenv("PACELINE_LOG", "warning", 1);
  auto log = Log::open(folder + "/agent.log", "agent");
  ASSERT_TRUE(log);
  EXPECT_FALSE(log->enabled(Log::Level::info));
  log->info("not this");
  log->warning("100 % {} of it");
  const std::string text = text_of(folder + "/agent.log");
  EXPECT_TRUE(text.ends_with("Z warning agent: 100 % {} of it\n")) << text;
  EXPECT_EQ(text.find("not this"), std::string::npos);
  struct stat status {};
  ASSERT_EQ(::stat((folder + "/agent.log").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST_F(LogTest, UnknownLevelNamesTheKnownOnes) {
  ::setenv("PACELINE_LOG", "loud", 1);
  const auto log = Log::open(folder + "/agent.log", "agent");
  ASSERT_FALSE(log);
  EXPECT_EQ(log.error().text, "PACELINE_LOG is 'loud': use debug, info, warning, error or off");
}

}  // namespace
}  // namespace paceline::observe
