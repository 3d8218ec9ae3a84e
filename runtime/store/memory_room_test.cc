#include "runtime/store/memory_room.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "runtime/base/test_directory.h"

namespace paceline::store {
namespace {

constexpr std::uint64_t kMiB = 1u << 20;

class MemoryRoomTest : public testing::Test {
 protected:
  void SetUp() override { write("/proc/meminfo", "MemTotal: 8388608 kB\nMemAvailable:    4194304 kB\n"); }
  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root + path).parent_path());
    std::ofstream(root + path) << text;
  }
  test::TestDirectory directory;
  std::string root = directory.path;
};

TEST_F(MemoryRoomTest, WithoutALimitTheMachineDecides) { EXPECT_EQ(available_bytes(root), 4096 * kMiB); }

TEST_F(MemoryRoomTest, ALimitOfTheOwnCgroupCounts) {
  write("/proc/self/cgroup", "0::/user/job\n");
  write("/sys/fs/cgroup/user/job/memory.max", std::to_string(1000 * kMiB));
  write("/sys/fs/cgroup/user/job/memory.current", std::to_string(400 * kMiB));
  EXPECT_EQ(available_bytes(root), 600 * kMiB);
}

TEST_F(MemoryRoomTest, ATighterLimitOfACgroupAboveCounts) {
  write("/proc/self/cgroup", "0::/user/job\n");
  write("/sys/fs/cgroup/user/memory.max", std::to_string(500 * kMiB));
  write("/sys/fs/cgroup/user/memory.current", std::to_string(450 * kMiB));
  write("/sys/fs/cgroup/user/job/memory.max", "max\n");
  write("/sys/fs/cgroup/user/job/memory.current", std::to_string(400 * kMiB));
  EXPECT_EQ(available_bytes(root), 50 * kMiB);
}

TEST_F(MemoryRoomTest, PagesOfFilesThatTheKernelCanDropDoNotCountAsUsed) {
  write("/proc/self/cgroup", "0::/\n");
  write("/sys/fs/cgroup/memory.max", std::to_string(1000 * kMiB));
  write("/sys/fs/cgroup/memory.current", std::to_string(900 * kMiB));
  write("/sys/fs/cgroup/memory.stat", "anon 5\ninactive_file " + std::to_string(300 * kMiB) + "\n");
  EXPECT_EQ(available_bytes(root), 400 * kMiB);
}

TEST_F(MemoryRoomTest, VersionOneOfCgroupsIsRead) {
  write("/proc/self/cgroup", "7:cpu,cpuacct:/a\n4:memory:/a/b\n0::/\n");
  write("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", std::to_string(200 * kMiB));
  write("/sys/fs/cgroup/memory/a/memory.usage_in_bytes", std::to_string(80 * kMiB));
  EXPECT_EQ(available_bytes(root), 120 * kMiB);
}

TEST_F(MemoryRoomTest, AUsageAboveTheLimitLeavesNothing) {
  write("/proc/self/cgroup", "0::/\n");
  write("/sys/fs/cgroup/memory.max", "1000");
  write("/sys/fs/cgroup/memory.current", "5000");
  EXPECT_EQ(available_bytes(root), 0u);
}

TEST_F(MemoryRoomTest, TheErrorSaysWhatIsNeededAndWhatIsThere) {
  write("/proc/self/cgroup", "0::/\n");
  write("/sys/fs/cgroup/memory.max", std::to_string(132 * kMiB));
  write("/sys/fs/cgroup/memory.current", "0");
  ASSERT_TRUE(check_room("windows", 100 * kMiB, root));
  const auto refused = check_room("windows", 100 * kMiB + 1, root);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::infeasible);
  EXPECT_EQ(refused.error().text,
            "windows need 101 MiB, 100 MiB are available: fewer workers, or a strategy with fewer buffers");
}

TEST_F(MemoryRoomTest, InAllThereIsWhatTheMachineHasOrTheTightestLimit) {
  EXPECT_EQ(total_bytes(root), 8192 * kMiB);
  write("/proc/self/cgroup", "0::/user/job\n");
  write("/sys/fs/cgroup/user/memory.max", std::to_string(500 * kMiB));
  write("/sys/fs/cgroup/user/job/memory.max", "max\n");
  EXPECT_EQ(total_bytes(root), 500 * kMiB);
}

TEST_F(MemoryRoomTest, ThisMachineHasSomeRoom) {
  EXPECT_GT(available_bytes(), kMiB);
  EXPECT_GE(total_bytes(), available_bytes());
}

TEST(PrivateBytesTest, WhatAProcessAllocatesIsItsOwnFilesAndSharedMemoryAreNot) {
  const auto before = private_bytes(::getpid());
  EXPECT_GT(before, 0u);
  constexpr std::size_t kSize = 64 * kMiB;
  const auto map = [](int flags) {
    // Filled by the kernel: what a sanitizer notes of each byte that is written would be private memory, too.
    return ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  };
  void* const shared = map(MAP_SHARED);
  EXPECT_LT(private_bytes(::getpid()), before + kSize / 2);
  void* const own = map(MAP_PRIVATE);
  EXPECT_GE(private_bytes(::getpid()), before + kSize / 2);
  EXPECT_LT(private_bytes(::getpid()), before + 2 * kSize);
  ::munmap(shared, kSize);
  ::munmap(own, kSize);
  EXPECT_EQ(private_bytes(-1), 0u);
}

}  // namespace
}  // namespace paceline::store
