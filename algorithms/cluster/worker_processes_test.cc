#include "algorithms/cluster/worker_processes.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "runtime/base/steady_now.h"
#include "runtime/base/test_directory.h"

namespace paceline::cluster {
namespace {

using namespace std::chrono_literals;
using actors::ActorRouter;

constexpr Duration kDeadline = 60s;  // Only a failing test gets there.

/// Its workers answer each packet with the same bytes and descriptors.
class WorkerProcessesTest : public testing::Test {
 protected:
  void run_until_answered(std::size_t count) {
    for (const Instant end = steady_now() + kDeadline; answers_.size() < count && steady_now() < end;)
      ASSERT_TRUE(loop_.run_once(100ms));
  }

  test::TestDirectory directory_;
  EventLoop loop_ = *EventLoop::create();
  observe::Log log_ = *observe::Log::open(directory_.path / "agent.log", "agent");
  std::vector<std::string> answers_;
  WorkerProcesses sut_{{NodeId{0}, directory_.path, "ipc:///nowhere"},
                       loop_,
                       log_,
                       {[](WorkerId, const std::string&, bool) {},
                        [this](WorkerId, process::Packet packet) {
                          for (const int fd : packet.fds) ::close(fd);
                          answers_.push_back(packet.bytes + "+" + std::to_string(packet.fds.size()));
                        }}};
};

TEST_F(WorkerProcessesTest, WhatIsSentBeforeTheForkWasToldOfArrivesInItsOrder) {
  const WorkerId worker{7};
  ActorRouter::Fork fork;
  fork.worker = worker;
  fork.executable.path = PACELINE_FORK_TEST_SCRIPT;
  sut_.fork(fork);
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  sut_.send(worker, "first", {ends[0], ends[1]});
  ::close(ends[0]);
  ::close(ends[1]);
  sut_.send(worker, "second", {});
  run_until_answered(2);
  sut_.send(worker, "third", {});
  run_until_answered(3);
  EXPECT_EQ(answers_, (std::vector<std::string>{"first+2", "second+0", "third+0"}));
}

}  // namespace
}  // namespace paceline::cluster
