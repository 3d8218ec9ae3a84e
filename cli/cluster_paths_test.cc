#include "cli/cluster_paths.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "runtime/base/test_directory.h"

namespace paceline::cli {
namespace {

namespace fs = std::filesystem;

class ClusterPathsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ::unsetenv("PACELINE_CLUSTER");
    auto opened = RuntimeRoot::open_at(folder / "root", ::getuid());
    ASSERT_TRUE(opened) << opened.error().text;
    root = *opened;
  }

  test::TestDirectory directory;
  fs::path folder = directory.path;
  RuntimeRoot root;
};

TEST_F(ClusterPathsTest, TheRootIsClosedToOthers) {
  struct stat info {};
  ASSERT_EQ(::stat(root.path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
}

TEST_F(ClusterPathsTest, ARootThatOthersMayEnterIsRefused) {
  fs::permissions(root.path, fs::perms::group_read, fs::perm_options::add);
  auto opened = RuntimeRoot::open_at(root.path, ::getuid());
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().kind, ErrorKind::invalid);
}

TEST_F(ClusterPathsTest, ARootOfSomebodyElseIsRefused) {
  EXPECT_FALSE(RuntimeRoot::open_at(root.path, ::getuid() + 1));
}

TEST_F(ClusterPathsTest, ALinkInPlaceOfTheRootIsRefused) {
  fs::create_directory_symlink(root.path, folder / "link");
  EXPECT_FALSE(RuntimeRoot::open_at(folder / "link", ::getuid()));
}

TEST_F(ClusterPathsTest, NamesThatAreNoFolderNamesAreRefused) {
  for (const char* name : {"", "..", "a/b", "A", ".lock", "a b", "12345678901234567890123456789012345678901"}) {
    EXPECT_FALSE(check_cluster_name(name)) << name;
  }
  EXPECT_TRUE(check_cluster_name("run-7_a"));
}

TEST_F(ClusterPathsTest, AClaimedClusterRunsUntilItsLockIsReleased) {
  auto claimed = claim_directory(root, "x");
  ASSERT_TRUE(claimed) << claimed.error().text;
  EXPECT_TRUE(is_running(claimed->path));
  EXPECT_TRUE(sweep_stale(root).empty());
  const fs::path path = claimed->path;
  { const OwnedFd released = std::move(claimed->lock); }
  EXPECT_FALSE(is_running(path));
}

TEST_F(ClusterPathsTest, TwoClustersRunAtOnceButNotTwoOfOneName) {
  auto x = claim_directory(root, "x");
  auto y = claim_directory(root, "y");
  ASSERT_TRUE(x && y);
  auto again = claim_directory(root, "x");
  ASSERT_FALSE(again);
  EXPECT_NE(again.error().text.find("already up"), std::string::npos);
  EXPECT_EQ(running_clusters(root), (std::vector<std::string>{"x", "y"}));
}

TEST_F(ClusterPathsTest, AFolderThatNobodyHoldsIsSwept) {
  { auto gone = claim_directory(root, "gone"); }
  auto kept = claim_directory(root, "kept");  // Claiming sweeps too.
  EXPECT_FALSE(fs::exists(root.path / "gone"));
  EXPECT_TRUE(fs::exists(root.path / "kept"));
  fs::create_directory(root.path / "lockless");
  EXPECT_EQ(sweep_stale(root), std::vector<std::string>{"lockless"});
}

TEST_F(ClusterPathsTest, AMissingClusterNamesThoseThatRun) {
  auto x = claim_directory(root, "x");
  auto found = find_cluster(root, "nope");
  ASSERT_FALSE(found);
  EXPECT_NE(found.error().text.find("'nope'"), std::string::npos);
  EXPECT_NE(found.error().text.find("these are: x"), std::string::npos);
}

TEST_F(ClusterPathsTest, TheVariableSelectsAClusterByNameOrFolder) {
  auto x = claim_directory(root, "x");
  ::setenv("PACELINE_CLUSTER", "x", 1);
  EXPECT_EQ(find_cluster(root, "").value(), x->path);
  ::setenv("PACELINE_CLUSTER", x->path.c_str(), 1);
  EXPECT_EQ(find_cluster(root, "").value(), x->path);
  EXPECT_FALSE(find_cluster(root, "other"));  // A name that is given wins.
  ::unsetenv("PACELINE_CLUSTER");
}

}  // namespace
}  // namespace paceline::cli
