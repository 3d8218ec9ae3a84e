// A window between real processes: never torn, whatever is killed, and nothing left behind.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "runtime/base/steady_now.h"
#include "runtime/memory/control.h"
#include "runtime/memory/window.h"

namespace paceline::memory {
namespace {

constexpr std::size_t kBlock = 4096;
constexpr Window::Layout kShared{.elements = 64 * kBlock / 8, .dtype = Dtype::f64, .buffers = 5};

/// Every block says which publication it belongs to and carries a checksum over all of its words.
struct Block {
  std::uint64_t version;
  std::uint64_t words[kBlock / 8 - 2];
  std::uint64_t checksum;
};
static_assert(sizeof(Block) == kBlock);

std::uint64_t checksum(const Block& block) {
  std::uint64_t hash = block.version * 0x9e3779b97f4a7c15ull;
  for (const std::uint64_t word : block.words) hash = (hash ^ word) * 0x100000001b3ull;
  return hash;
}

std::span<Block> blocks(const Window& window, Buffer buffer) {
  const auto data = window.data(buffer);
  return {reinterpret_cast<Block*>(data.data()), data.size() / kBlock};
}

void fill(const Window& window, Buffer buffer, std::uint64_t version) {
  for (Block& block : blocks(window, buffer)) {
    block.version = version;
    for (std::size_t i = 0; i < std::size(block.words); ++i) block.words[i] = version * 31 + i;
    block.checksum = checksum(block);
  }
  window.tag(buffer).iteration = static_cast<std::int64_t>(version);
}

/// The version of all blocks; 0 if they are not of one version, or one is damaged.
std::uint64_t version_of(const Window& window, Buffer buffer) {
  const auto all = blocks(window, buffer);
  for (const Block& block : all)
    if (block.version != all[0].version || block.checksum != checksum(block)) return 0;
  if (window.tag(buffer).iteration != static_cast<std::int64_t>(all[0].version)) return 0;
  return all[0].version;
}

/// Forks; the child runs `body` and ends without unwinding, and is killed if the parent dies.
template <class Body>
pid_t child(Body body) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    body();
    ::_exit(0);
  }
  EXPECT_GT(pid, 0);
  return pid;
}

/// Publishes for ever, taking a retained result now and then.
[[noreturn]] void publish_for_ever(process::Fd fd, std::uint64_t version) {
  auto window = Window::map(std::move(fd), kShared);
  if (!window) ::_exit(3);
  for (;; ++version) {
    const auto writing = window->writing();
    if (!writing) ::_exit(4);
    fill(*window, *writing, version);
    if (!window->publish(true)) ::_exit(5);
    if (version % 5 == 0) {
      if (const auto adopted = window->adopt(); adopted && version_of(*window, *adopted) == 0) ::_exit(6);
    }
  }
}

/// Ends when the process has; its exit status, or minus the signal.
int end_of(pid_t pid) {
  int status = 0;
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

/// One averaging of the agent: seal, verify, copy into a result that the worker may adopt. The version sealed; 0:
/// nothing is published.
std::uint64_t round(Window& window) {
  const auto sealed = window.seal();
  if (!sealed) return 0;
  const std::uint64_t version = version_of(window, *sealed);
  EXPECT_NE(version, 0u) << "a torn publication was sealed";
  const auto result = window.begin_result();
  EXPECT_TRUE(result);
  if (result) {
    std::memcpy(window.data(*result).data(), window.data(*sealed).data(), window.data(*sealed).size());
    window.tag(*result) = window.tag(*sealed);
    EXPECT_EQ(version_of(window, *sealed), version) << "a sealed buffer changed";
    window.retain();
  }
  window.unseal(version % 2 == 0 ? Window::Unseal::keep : Window::Unseal::recycle);
  return version;
}

TEST(WindowProcessesTest, WhatAnotherProcessPublishesIsNeverTornAndOutlivesItsDeath) {
  auto created = Window::create(kShared);
  ASSERT_TRUE(created) << created.error().text;
  Window& window = *created;
  std::uint64_t newest = 0;
  // Workers are killed wherever they happen to be, most often in the middle of writing; the next one goes on in the
  // same window.
  for (int life = 0; life < 20; ++life) {
    const std::uint64_t first = newest + 1'000'000;
    const pid_t worker = child([&] { publish_for_ever(window.fd().duplicate(), first); });
    const Instant deadline = steady_now() + std::chrono::seconds(20);
    int seen = 0;
    while (seen < 40 && steady_now() < deadline && !HasFailure()) {
      const std::uint64_t version = round(window);
      if (version >= first) ++seen;
      if (version != 0) newest = std::max(newest, version);
    }
    EXPECT_EQ(seen, 40) << "the worker stopped publishing";
    ::kill(worker, SIGKILL);
    EXPECT_EQ(end_of(worker), -SIGKILL) << "the worker ended by itself";
    // The dead one's last publication still answers.
    if (const std::uint64_t last = round(window); last != 0) {
      EXPECT_GE(last, newest);
      newest = last;
    }
    ASSERT_FALSE(HasFailure()) << "life " << life;
  }
}

TEST(WindowProcessesTest, AWorkerStoppedInMidWriteSpoilsNothing) {
  auto created = Window::create(kShared);
  ASSERT_TRUE(created) << created.error().text;
  const pid_t worker = child([&] { publish_for_ever(created->fd().duplicate(), 1); });
  const Instant deadline = steady_now() + std::chrono::seconds(20);
  while (round(*created) == 0 && steady_now() < deadline) {
  }
  for (int stop = 0; stop < 10; ++stop) {
    ::kill(worker, SIGSTOP);
    int status = 0;
    ASSERT_EQ(::waitpid(worker, &status, WUNTRACED), worker);
    ASSERT_TRUE(WIFSTOPPED(status));
    for (int i = 0; i < 4; ++i) round(*created);
    ::kill(worker, SIGCONT);
    for (int i = 0; i < 20; ++i) round(*created);
  }
  ::kill(worker, SIGKILL);
  EXPECT_EQ(end_of(worker), -SIGKILL);
}

/// Shared memory of the whole machine.
std::uint64_t shmem_kib() {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);)
    if (line.rfind("Shmem:", 0) == 0) return std::stoull(line.substr(6));
  return 0;
}

std::size_t files_in_dev_shm() {
  std::error_code ignored;
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/dev/shm", ignored))
    if (entry.path().filename().string().find("paceline") != std::string::npos) ++count;
  return count;
}

TEST(WindowProcessesTest, NothingIsLeftWhenAgentAndWorkerAreKilled) {
  constexpr Window::Layout kLarge{.elements = 48 << 20, .dtype = Dtype::f32, .buffers = 1};  // 192 MiB: stands out.
  const std::uint64_t before = shmem_kib();
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t agent = child([&] {
    auto window = Window::create(kLarge);
    if (!window) ::_exit(3);
    const pid_t worker = child([&] {
      auto mapped = Window::map(window->fd().duplicate(), kLarge);
      const pid_t self = mapped ? ::getpid() : -1;
      [[maybe_unused]] const auto written = ::write(ready[1], &self, sizeof self);
      for (;;) ::pause();
    });
    if (worker < 0) ::_exit(4);
    for (;;) ::pause();
  });
  pid_t worker = -1;
  ASSERT_EQ(::read(ready[0], &worker, sizeof worker), static_cast<ssize_t>(sizeof worker));
  ASSERT_GT(worker, 0);
  EXPECT_GT(shmem_kib(), before + 100 * 1024) << "the window is not where this test looks for it";
  ::kill(worker, SIGKILL);
  ::kill(agent, SIGKILL);
  EXPECT_EQ(end_of(agent), -SIGKILL);
  ::close(ready[0]);
  ::close(ready[1]);
  // The worker is no child of ours: its memory goes a moment later.
  const Instant deadline = steady_now() + std::chrono::seconds(20);
  while (shmem_kib() > before + 100 * 1024 && steady_now() < deadline) ::usleep(1000);
  EXPECT_LT(shmem_kib(), before + 100 * 1024);
  EXPECT_EQ(files_in_dev_shm(), 0u);
}

TEST(ControlPageProcessesTest, AWorkerSleepsOnItsReadOnlyPageUntilTheAgentRings) {
  auto page = ControlPage::create();
  ASSERT_TRUE(page) << page.error().text;
  const auto fd = page->read_only_fd();
  ASSERT_TRUE(fd) << fd.error().text;
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t worker = child([&] {
    auto mapped = ControlPage::map(*fd);
    if (!mapped) ::_exit(3);
    const auto seen = mapped->bell();
    if (mapped->wait(seen, std::chrono::milliseconds(5))) ::_exit(4);  // Nobody rings yet.
    [[maybe_unused]] const auto written = ::write(ready[1], "r", 1);
    if (!mapped->wait(seen, std::chrono::seconds(20), {0, 0})) ::_exit(5);
    const auto verdict = mapped->verdict(0);
    if (!verdict || verdict->number != 1 || verdict->verdict.next != 8) ::_exit(6);
    if (mapped->words().abandoned.load() != 7) ::_exit(7);
  });
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  page->words().abandoned.store(7);
  page->set_verdict({.own = 7, .next = 8, .next_round = 8});
  page->ring();
  EXPECT_EQ(end_of(worker), 0);
  ::close(ready[0]);
  ::close(ready[1]);
}

}  // namespace
}  // namespace paceline::memory
