#include "algorithms/cluster/worker_processes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "actors/process_ids.h"
#include "runtime/base/steady_now.h"
#include "runtime/base/test_directory.h"
#include "runtime/process/few_descriptors_test_support.h"

namespace paceline::cluster {
namespace {

using namespace std::chrono_literals;
using actors::ActorRouter;

using testing::HasSubstr;

constexpr Duration kDeadline = 60s;  // Only a failing test gets there.

pid_t parent_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string stat;
  std::getline(file, stat);
  return std::stoi(stat.substr(stat.rfind(')') + 4));
}

/// Its workers answer each packet with the same bytes and descriptors.
class WorkerProcessesTest : public testing::Test {
 protected:
  void run_until(const std::function<bool()>& condition) {
    const Instant end = steady_now() + kDeadline;
    while (!condition() && steady_now() < end) ASSERT_TRUE(loop_.run_once(100ms));
    ASSERT_TRUE(condition());
  }
  void run_until_answered(std::size_t count) {
    run_until([&] { return answers_.size() >= count; });
  }
  void fork(WorkerId worker, const std::string& executable, std::vector<std::string> args = {}) {
    ActorRouter::Fork fork;
    fork.worker = worker;
    fork.executable.path = executable;
    fork.executable.args = std::move(args);
    sut_.fork(fork);
  }
  void send(WorkerId worker, const std::string& what, const std::vector<process::BorrowedFd>& fds = {}) {
    sut_.answer(worker, 1, what, fds);
  }
  void fork_named(WorkerId worker, const std::string& name, std::vector<std::string> env) {
    ActorRouter::Fork fork;
    fork.worker = worker;
    fork.name = name;
    fork.executable.path = PACELINE_FORK_TEST_SCRIPT;
    fork.executable.env = std::move(env);
    sut_.fork(fork);
  }
  std::string how_ended(WorkerId worker) {
    run_until([&] { return ended_.contains(worker); });
    return ended_[worker];
  }

  test::TestDirectory directory_;
  EventLoop loop_ = *EventLoop::create();
  observe::Log log_ = *observe::Log::open(directory_.path / "agent.log", "agent");
  std::vector<std::string> answers_;
  std::map<WorkerId, std::string> ended_;
  WorkerProcesses sut_{{NodeId{0}, directory_.path, "ipc:///nowhere"},
                       loop_,
                       log_,
                       {[this](WorkerId worker, const auto& end) { ended_[worker] = end.how; },
                        [this](WorkerId, process::DescriptorMessage message) {
                          answers_.push_back(message.body + "+" + std::to_string(message.fds.size()));
                        }}};
};

TEST_F(WorkerProcessesTest, WhatIsSentBeforeTheForkWasToldOfArrivesInItsOrder) {
  const WorkerId worker{7};
  fork(worker, PACELINE_FORK_TEST_SCRIPT);
  {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const process::Fd out(ends[0]), in(ends[1]);
    send(worker, "first", {out, in});
  }
  send(worker, "second");
  run_until_answered(2);
  send(worker, "third");
  run_until_answered(3);
  EXPECT_EQ(answers_, (std::vector<std::string>{"first+2", "second+0", "third+0"}));
}

TEST_F(WorkerProcessesTest, WhereAServerCannotBeStartedAgainItsWorkersGoOnAndNewOnesHearWhy) {
  const std::string script = directory_.path / "script";
  std::filesystem::copy_file(PACELINE_FORK_TEST_SCRIPT, script);
  fork(WorkerId{1}, script);
  send(WorkerId{1}, "first");
  run_until_answered(1);
  std::filesystem::remove(script);
  ASSERT_EQ(::kill(parent_of(sut_.pid(WorkerId{1})), SIGKILL), 0);
  fork(WorkerId{2}, script);
  EXPECT_THAT(how_ended(WorkerId{2}), HasSubstr("start " + script + ": No such file"));
  send(WorkerId{1}, "second");
  run_until_answered(2);
  fork(WorkerId{3}, script);
  EXPECT_THAT(how_ended(WorkerId{3}), HasSubstr("start " + script + ": No such file"));
  EXPECT_FALSE(ended_.contains(WorkerId{1}));
  sut_.end(WorkerId{1}, "that is enough");
  EXPECT_EQ(how_ended(WorkerId{1}), "that is enough");
  run_until([&] { return sut_.servers() == 0; });
}

TEST_F(WorkerProcessesTest, NobodyWaitsForAWorkerThatDoesNotRead) {
  constexpr std::size_t kPackets = 500;
  const std::string packet(4096, 'x');
  fork(WorkerId{1}, PACELINE_FORK_TEST_SCRIPT);
  send(WorkerId{1}, "first");
  run_until_answered(1);
  ASSERT_EQ(::kill(sut_.pid(WorkerId{1}), SIGSTOP), 0);
  for (std::size_t i = 0; i < kPackets; ++i) send(WorkerId{1}, packet + std::to_string(i));
  ASSERT_EQ(::kill(sut_.pid(WorkerId{1}), SIGCONT), 0);
  run_until_answered(1 + kPackets);
  for (std::size_t i = 0; i < kPackets; ++i) EXPECT_EQ(answers_[1 + i], packet + std::to_string(i) + "+0");

  ASSERT_EQ(::kill(sut_.pid(WorkerId{1}), SIGSTOP), 0);
  for (std::size_t i = 0; i < 2 * WorkerProcesses::kUnsentMax; ++i) send(WorkerId{1}, packet);
  EXPECT_THAT(how_ended(WorkerId{1}), HasSubstr("has not read the last 1024 packets"));
}

TEST_F(WorkerProcessesTest, WhereNoDescriptorIsLeftForWhatAWorkerGivesItHearsThatAndGoesOn) {
  const WorkerId worker{1};
  fork(worker, PACELINE_FORK_TEST_SCRIPT);
  send(worker, "first");
  run_until_answered(1);
  const process::Fd given(::dup(STDERR_FILENO));
  send(worker, "given", {given});
  {
    const process::FewDescriptors none_left(0);
    run_until_answered(2);
  }
  send(worker, "second");
  run_until_answered(3);
  EXPECT_EQ(answers_,
            (std::vector<std::string>{"first+0", "its agent has no descriptors left (ulimit -n)+0", "second+0"}));
  EXPECT_FALSE(ended_.contains(worker));
}

TEST_F(WorkerProcessesTest, WhoSaysNonsenseOverItsSocketIsEnded) {
  fork_named(WorkerId{1}, "other", {"ACT=nonsense"});
  EXPECT_EQ(how_ended(WorkerId{1}), "a packet between worker and agent has 8 bytes");
  EXPECT_TRUE(answers_.empty());
}

TEST_F(WorkerProcessesTest, ADeathQuotesTheLinesOfTheProcessThatDiedWhateverOthersAreCalled) {
  const std::string log = std::string(directory_.path) + "/counter";
  fork_named(WorkerId{1}, "counter", {"ACT=crash"});
  EXPECT_THAT(how_ended(WorkerId{1}), HasSubstr("its log " + log + ".log ends with: last words"));
  fork_named(WorkerId{2}, "counter", {"ACT=exit", "CODE=3"});  // An earlier one's lines are not its own.
  EXPECT_EQ(how_ended(WorkerId{2}), "exit status 3");
  fork_named(WorkerId{3}, "counter", {"ACT=echo"});
  fork_named(WorkerId{4}, "counter", {"ACT=crash"});
  EXPECT_THAT(how_ended(WorkerId{4}), HasSubstr("its log " + log + "-2.log ends with: last words"));
  send(WorkerId{3}, "still there");
  run_until_answered(1);
}

TEST_F(WorkerProcessesTest, LogsOfWhoHasNoNameAreNeverThoseOfAJobsRanks) {
  const auto log_of = [&](std::uint64_t number, const std::string& name, const std::string& type) {
    ActorRouter::Fork fork;
    fork.worker = actors::worker_id(NodeId{3}, static_cast<std::uint32_t>(number));
    fork.name = name;
    fork.type = type;
    fork.executable.path = PACELINE_FORK_TEST_SCRIPT;
    sut_.fork(fork);
    return std::filesystem::path(sut_.log(fork.worker)).filename().string();
  };
  EXPECT_EQ(log_of(1, "tasks", ""), "tasks-1.log");
  EXPECT_EQ(log_of(2, "", "Counter"), "actor-2.log");
  EXPECT_EQ(log_of(3, "tasks", "Counter"), "tasks.log");
  EXPECT_EQ(log_of(4, "worker-1", "paceline::Worker"), "worker-1.log");
}

TEST_F(WorkerProcessesTest, ServersThatNobodyNeedsEndWithoutBeingWaitedFor) {
  for (std::uint64_t i = 0; i < 3 * WorkerProcesses::kIdleServersMax; ++i) {
    fork(WorkerId{i}, PACELINE_FORK_TEST_SCRIPT, {std::to_string(i)});
    sut_.end(WorkerId{i}, "that is enough");
    EXPECT_EQ(how_ended(WorkerId{i}), "that is enough");
  }
  run_until([&] { return sut_.servers() <= WorkerProcesses::kIdleServersMax; });
}

}  // namespace
}  // namespace paceline::cluster
