#include "runtime/process/spawn.h"

#include <gtest/gtest.h>

#include "runtime/process/exit.h"

namespace paceline::process {
namespace {

TEST(SpawnTest, LaterChangesReplaceInheritedVariables) {
  EXPECT_EQ(merge_environment({"A=1", "B=2", "AB=3"}, {{"A", "x"}, {"C", "y"}, {"A", "z"}}),
            (std::vector<std::string>{"B=2", "AB=3", "C=y", "A=z"}));
}

std::string tunables(std::string_view user) { return fork_server_environment(user).back().second; }

TEST(SpawnTest, UsersTunablesWinOverOurs) {
  EXPECT_EQ(tunables(""),
            "glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=33554432:glibc.malloc.trim_threshold=1073741824");
  EXPECT_EQ(tunables("glibc.malloc.hugetlb=2:glibc.malloc.perturb=7"),
            "glibc.malloc.mmap_threshold=33554432:glibc.malloc.trim_threshold=1073741824:glibc.malloc.hugetlb=2:glibc."
            "malloc.perturb=7");
}

TEST(ExitTest, EndsAreWords) {
  EXPECT_EQ(to_string(Exit{.signalled = false, .code = 3}), "exit status 3");
  EXPECT_EQ(to_string(Exit{.signalled = true, .code = 11}), "killed by SIGSEGV (Segmentation fault)");
  EXPECT_EQ(to_string(Exit{.signalled = true, .code = 63}), "killed by signal 63");
}

}  // namespace
}  // namespace paceline::process
