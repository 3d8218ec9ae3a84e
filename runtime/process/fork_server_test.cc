#include "runtime/process/fork_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include "runtime/base/steady_now.h"
#include "runtime/base/test_directory.h"
#include "runtime/process/fd.h"
#include "runtime/process/supervise.h"

namespace paceline::process {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;
using testing::Test;
using Event = ForkServer::Event;
using Happened = ForkServer::Event::Kind;

constexpr Duration kDeadline = 60s;  // Only a failing test gets there.

bool readable_within(int fd, Duration time) {
  pollfd waiting{fd, POLLIN, 0};
  return ::poll(&waiting, 1, static_cast<int>(time / 1ms)) > 0;
}

struct Worker {
  pid_t pid;
  Fd pidfd, socket;
};

class ForkServerTest : public Test {
 protected:
  ForkServer::Options options() {
    return {.executable = PACELINE_FORK_TEST_SCRIPT, .args = {}, .env = {}, .log_path = folder + "/server.log"};
  }

  void start(ForkServer::Options given) {
    auto started = ForkServer::start(std::move(given));
    ASSERT_TRUE(started) << started.error().text;
    sut.emplace(std::move(*started));
  }
  void start() { start(options()); }

  std::string log_of(std::uint64_t worker) { return folder + "/worker_" + std::to_string(worker) + ".log"; }
  ForkRequest request(std::uint64_t worker, std::vector<std::pair<std::string, std::string>> env) {
    return {.worker = WorkerId(worker), .log_path = log_of(worker), .env = std::move(env)};
  }

  /// Collects events until one is of `kind`; it is removed and returned.
  std::optional<Event> wait_for(Happened kind) {
    const Instant end = steady_now() + kDeadline;
    for (;;) {
      const auto found = std::find_if(seen.begin(), seen.end(), [&](const Event& e) { return e.kind == kind; });
      if (found != seen.end()) {
        Event event = std::move(*found);
        seen.erase(found);
        return event;
      }
      if (steady_now() > end || !readable_within(sut->descriptor(), end - steady_now())) return std::nullopt;
      for (Event& event : sut->events()) seen.push_back(std::move(event));
    }
  }

  void fork_one(std::uint64_t worker, std::vector<std::pair<std::string, std::string>> env) {
    const auto asked = sut->fork(request(worker, std::move(env)));
    ASSERT_TRUE(asked) << asked.error().text;
    auto event = wait_for(Happened::forked);
    ASSERT_TRUE(event);
    ASSERT_EQ(event->worker, WorkerId(worker));
    workers.insert_or_assign(worker, Worker{event->pid, std::move(event->pidfd), std::move(event->socket)});
  }

  bool answers(std::uint64_t worker) {
    const Fd& socket = workers.at(worker).socket;
    if (!send_with_fds(socket, "are you there", {})) return false;
    const auto packet = receive_with_fds(socket, static_cast<int>(kDeadline / 1ms));
    return packet && packet->bytes == "are you there";
  }

  static std::string text_of(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }

  void kill_server() {
    const Fd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, sut->pid(), 0)));
    ASSERT_TRUE(kill_worker(pidfd, SIGKILL));
    ASSERT_TRUE(readable_within(pidfd.get(), kDeadline));
  }

  test::TestDirectory directory;
  std::string folder = directory.path;
  std::vector<Event> seen;
  std::map<std::uint64_t, Worker> workers;
  std::optional<ForkServer> sut;
};

class ForkServerFamilyTest : public ForkServerTest, public testing::WithParamInterface<const char*> {
 protected:
  /// Worker 1 and a process that it has started, which is returned.
  Fd start_family() {
    start();
    fork_one(1, {{"ACT", GetParam()}});
    const auto told = receive_with_fds(workers.at(1).socket, static_cast<int>(kDeadline / 1ms));
    return Fd(told ? static_cast<int>(::syscall(SYS_pidfd_open, std::stoi(told->bytes), 0)) : -1);
  }
};

class ForkServerCountTest : public ForkServerTest, public testing::WithParamInterface<int> {};

TEST_P(ForkServerCountTest, WorkersAreForkedRegisteredAndAnswer) {
  start();
  for (int i = 0; i < GetParam(); ++i) ASSERT_TRUE(sut->fork(request(static_cast<std::uint64_t>(i), {})));
  std::set<pid_t> pids;
  for (int i = 0; i < GetParam(); ++i) {
    auto event = wait_for(Happened::forked);
    ASSERT_TRUE(event);
    pids.insert(event->pid);
    workers.insert_or_assign(event->worker.value,
                             Worker{event->pid, std::move(event->pidfd), std::move(event->socket)});
  }
  EXPECT_EQ(pids.size(), static_cast<std::size_t>(GetParam()));
  for (int i = 0; i < GetParam(); ++i) EXPECT_TRUE(answers(static_cast<std::uint64_t>(i)));
}
INSTANTIATE_TEST_SUITE_P(Counts, ForkServerCountTest, testing::Values(1, 8, 32));

TEST_F(ForkServerTest, WhereMemoryRunsOutAWorkerEndsBeforeItsAgent) {
  start();
  fork_one(1, {});
  EXPECT_TRUE(answers(1));
  EXPECT_EQ(text_of("/proc/" + std::to_string(workers.at(1).pid) + "/oom_score_adj"), "500\n");
}

TEST_F(ForkServerTest, WorkerLeadsASessionWithCleanDescriptorsAndItsEnvironment) {
  ::setenv("GLIBC_TUNABLES", "glibc.malloc.trim_threshold=4096", 1);
  start();
  ::unsetenv("GLIBC_TUNABLES");
  fork_one(7, {{"ACT", "describe"}, {"OWN", "with = and space"}});
  const auto answer = receive_with_fds(workers.at(7).socket, static_cast<int>(kDeadline / 1ms));
  ASSERT_TRUE(answer);
  // One descriptor: the agent's socket. The user's own tunable wins.
  EXPECT_EQ(answer->bytes,
            "worker=7 leads_session=1 stdin=/dev/null sigchld_blocked=0 open_fds=1 blas=111 "
            "tunables=glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=33554432:glibc.malloc.trim_threshold=4096 "
            "own=with = and space server_env=");
}

TEST_F(ForkServerTest, ExitStatusIsReported) {
  start();
  fork_one(1, {{"ACT", "exit"}, {"CODE", "3"}});
  const auto event = wait_for(Happened::exited);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->worker, WorkerId(1));
  EXPECT_EQ(event->exit, (Exit{.signalled = false, .code = 3}));
}

TEST_F(ForkServerTest, CrashIsReportedAndItsLastLinesAreInALogOfItsOwn) {
  start();
  fork_one(1, {{"ACT", "crash"}});
  const auto event = wait_for(Happened::exited);
  ASSERT_TRUE(event);
  EXPECT_EQ(to_string(event->exit), "killed by SIGSEGV (Segmentation fault)");
  EXPECT_EQ(text_of(log_of(1)), "last words\n");  // And not the server's "warm".
  struct stat status {};
  ASSERT_EQ(::stat(log_of(1).c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST_F(ForkServerTest, StoppedWorkerIsKilledThroughItsPidfd) {
  start();
  fork_one(1, {});
  ASSERT_TRUE(kill_worker(workers.at(1).pidfd, SIGSTOP));
  ASSERT_TRUE(kill_worker(workers.at(1).pidfd, SIGKILL));
  const auto event = wait_for(Happened::exited);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->exit, (Exit{.signalled = true, .code = SIGKILL}));
  fork_one(2, {});  // The server's next message: the first was reaped.
  const auto again = kill_worker(workers.at(1).pidfd, SIGKILL);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().kind, ErrorKind::not_found);
}

TEST_P(ForkServerFamilyTest, ProcessesThatADeadWorkerStartedEndWithIt) {
  const Fd grandchild = start_family();
  ASSERT_TRUE(grandchild);
  ASSERT_TRUE(kill_worker(workers.at(1).pidfd, SIGKILL));
  EXPECT_TRUE(wait_for(Happened::exited));
  EXPECT_TRUE(readable_within(grandchild.get(), 10s));
}

TEST_P(ForkServerFamilyTest, ProcessesThatALivingWorkerStartedEndWithTheServer) {
  const Fd grandchild = start_family();
  ASSERT_TRUE(grandchild);
  sut.reset();
  EXPECT_TRUE(readable_within(grandchild.get(), 10s));
}
INSTANTIATE_TEST_SUITE_P(Sessions, ForkServerFamilyTest, testing::Values("family", "daemon"));

TEST_F(ForkServerTest, WorkersOutliveAKilledServerAndAreReapedByTheAgent) {
  start();
  fork_one(1, {});
  fork_one(2, {});
  const pid_t first = sut->pid();
  kill_server();
  ASSERT_TRUE(wait_for(Happened::server_restarted));
  EXPECT_NE(sut->pid(), first);
  EXPECT_TRUE(answers(1));
  EXPECT_TRUE(answers(2));

  fork_one(3, {});                                         // The new server works,
  ASSERT_TRUE(kill_worker(workers.at(1).pidfd, SIGKILL));  // an orphan's end is seen,
  const auto event = wait_for(Happened::exited);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->worker, WorkerId(1));
  EXPECT_EQ(event->exit, (Exit{.signalled = true, .code = SIGKILL}));
  siginfo_t info{};  // and no zombie is left.
  EXPECT_EQ(::waitid(P_PID, static_cast<id_t>(workers.at(1).pid), &info, WEXITED | WNOHANG | WNOWAIT), -1);
  EXPECT_EQ(errno, ECHILD);
}

TEST_F(ForkServerTest, WorkersOfARetiredServerGoOnUntilTheyEnd) {
  start();
  fork_one(1, {});
  sut->retire();
  EXPECT_EQ(sut->pid(), -1);
  EXPECT_THAT(sut->fork(request(2, {})).error().text, HasSubstr("has ended: it was not needed any more"));
  EXPECT_TRUE(answers(1));
  EXPECT_FALSE(sut->is_empty());
  ASSERT_TRUE(kill_worker(workers.at(1).pidfd, SIGKILL));
  ASSERT_TRUE(wait_for(Happened::exited));
  EXPECT_TRUE(sut->is_empty());
}

TEST_F(ForkServerTest, RequestsThatADyingServerDidNotAnswerAreGivenToTheNext) {
  start();
  fork_one(1, {});
  ASSERT_EQ(::kill(sut->pid(), SIGSTOP), 0);  // It will not answer.
  ASSERT_TRUE(sut->fork(request(2, {})));
  kill_server();
  auto event = wait_for(Happened::forked);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->worker, WorkerId(2));
  workers.insert_or_assign(2, Worker{event->pid, std::move(event->pidfd), std::move(event->socket)});
  EXPECT_TRUE(answers(2));
}

TEST_F(ForkServerTest, DestructionEndsTheServerAndAllWorkersOfEveryServer) {
  start();
  fork_one(1, {});
  kill_server();
  ASSERT_TRUE(wait_for(Happened::server_restarted));
  fork_one(2, {});
  ASSERT_TRUE(kill_worker(workers.at(1).pidfd, SIGSTOP));
  ASSERT_TRUE(kill_worker(workers.at(2).pidfd, SIGSTOP));
  sut.reset();
  for (auto& [id, worker] : workers) EXPECT_TRUE(readable_within(worker.pidfd.get(), 0ms)) << id;
}

TEST_F(ForkServerTest, NoWorkerOutlivesAKilledAgentNotEvenAStoppedOne) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
  const Fd ours(ends[0]);
  const pid_t agent = ::fork();
  ASSERT_GE(agent, 0);
  if (agent == 0) {  // The agent: worker 1 is of a former server; it and worker 2 are stopped, worker 3 runs.
    ::close(ends[0]);
    start();
    fork_one(1, {});
    kill_server();
    if (!wait_for(Happened::server_restarted)) ::_exit(1);
    fork_one(2, {});
    fork_one(3, {});
    (void)kill_worker(workers.at(1).pidfd, SIGSTOP);
    (void)kill_worker(workers.at(2).pidfd, SIGSTOP);
    const Fd server(static_cast<int>(::syscall(SYS_pidfd_open, sut->pid(), 0)));
    (void)send_with_fds(BorrowedFd(ends[1]), "started",
                        {workers.at(1).pidfd, workers.at(2).pidfd, workers.at(3).pidfd, server});
    for (;;) ::pause();
  }
  ::close(ends[1]);
  const auto told = receive_with_fds(ours, static_cast<int>(kDeadline / 1ms));
  EXPECT_EQ(::kill(agent, SIGKILL), 0);
  EXPECT_EQ(::waitpid(agent, nullptr, 0), agent);
  ASSERT_TRUE(told) << told.error().text;
  ASSERT_EQ(told->fds.size(), 4u);
  for (const Fd& pidfd : told->fds) EXPECT_TRUE(readable_within(pidfd.get(), kDeadline));
}

TEST_F(ForkServerTest, WorkerWhoseSocketTheAgentClosesEndsByItself) {
  start();
  fork_one(1, {});
  workers.at(1).socket.reset();
  const auto event = wait_for(Happened::exited);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->exit, (Exit{.signalled = false, .code = kExitAgentGone}));
}

TEST_F(ForkServerTest, ServerWithAThreadOfItsOwnRefusesToForkAndSaysWhy) {
  auto given = options();
  given.env = {"THREAD_AT_LOAD=1"};
  start(std::move(given));
  ASSERT_TRUE(sut->fork(request(1, {})));
  const auto event = wait_for(Happened::fork_refused);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->worker, WorkerId(1));
  EXPECT_NE(event->text.find("started them when it was loaded"), std::string::npos) << event->text;
}

TEST_F(ForkServerTest, WorkersHaveTheEnvironmentAndTheDirectoryThatAreAskedFor) {
  ASSERT_EQ(::setenv("OF_THE_AGENT", "1", 1), 0);
  auto given = options();
  given.env = {"OWN=of the driver", "GLIBC_TUNABLES=glibc.malloc.hugetlb=2", "OMP_NUM_THREADS=4"};
  given.directory = folder + "/work";
  ASSERT_EQ(::mkdir(given.directory.c_str(), 0700), 0);
  start(given);
  fork_one(1, {{"ACT", "describe"}});
  const auto packet = receive_with_fds(workers.at(1).socket, static_cast<int>(kDeadline / 1ms));
  ASSERT_TRUE(packet);
  EXPECT_THAT(packet->bytes, HasSubstr("own=of the driver"));
  EXPECT_THAT(packet->bytes, HasSubstr("blas=111"));
  EXPECT_THAT(packet->bytes, HasSubstr("glibc.malloc.hugetlb=2"));
  const std::string process = "/proc/" + std::to_string(workers.at(1).pid);
  EXPECT_EQ(std::filesystem::read_symlink(process + "/cwd"), given.directory);
  EXPECT_THAT(text_of(process + "/environ"), Not(HasSubstr("OF_THE_AGENT")));
}

TEST_F(ForkServerTest, ADirectoryThatIsGoneIsNamed) {
  auto given = options();
  given.directory = folder + "/gone";
  const auto started = ForkServer::start(given);
  ASSERT_FALSE(started);
  EXPECT_THAT(started.error().text, HasSubstr("in " + given.directory + ", where its driver works: No such file"));
}

TEST_F(ForkServerTest, UnwritableLogRefusesThatWorkerOnly) {
  start();
  auto bad = request(1, {});
  bad.log_path = folder + "/missing/worker.log";
  ASSERT_TRUE(sut->fork(bad));
  const auto event = wait_for(Happened::fork_refused);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->text, "open log " + bad.log_path + ": No such file or directory");
  fork_one(2, {});
  EXPECT_TRUE(answers(2));
}

TEST_F(ForkServerTest, MissingExecutableIsAnErrorAtOnce) {
  auto given = options();
  given.executable = folder + "/missing";
  const auto started = ForkServer::start(std::move(given));
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().kind, ErrorKind::not_found);
  EXPECT_NE(started.error().text.find(folder + "/missing"), std::string::npos);
}

TEST_F(ForkServerTest, FileThatIsNoProgramIsAnErrorAtOnce) {
  auto given = options();
  given.executable = folder + "/text";
  std::ofstream(given.executable) << "hello\n";
  std::filesystem::permissions(given.executable, std::filesystem::perms::owner_all);
  const auto started = ForkServer::start(std::move(given));
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().kind, ErrorKind::invalid);
}

TEST_F(ForkServerTest, ProgramThatIsNoActorScriptFailsAfterThreeStarts) {
  auto given = options();
  given.executable = "/bin/sh";
  given.args = {"-c", "echo life; exit 5"};
  start(std::move(given));
  ASSERT_TRUE(sut->fork(request(1, {})));
  const auto event = wait_for(Happened::server_failed);
  ASSERT_TRUE(event);
  EXPECT_NE(event->text.find("exit status 5"), std::string::npos) << event->text;
  EXPECT_NE(event->text.find("is it an actor script"), std::string::npos) << event->text;
  EXPECT_NE(event->text.find("ends: life"), std::string::npos) << event->text;
  EXPECT_EQ(text_of(folder + "/server.log"), "life\nlife\nlife\n");
  EXPECT_EQ(sut->pid(), -1);
  EXPECT_EQ(sut->fork(request(2, {})).error().kind, ErrorKind::disconnected);
}

TEST_F(ForkServerTest, WarmUpThatThrowsIsNamedByTheFailure) {
  auto given = options();
  given.env = {"BAD_WARM_UP=1"};
  start(std::move(given));
  const auto event = wait_for(Happened::server_failed);
  ASSERT_TRUE(event);
  EXPECT_NE(event->text.find("warm-up failed: no such model file"), std::string::npos) << event->text;
}

TEST_F(ForkServerTest, ProgramThatNeverBecomesReadyIsGivenUpAfterItsTime) {
  auto given = options();
  given.executable = "/bin/sleep";
  given.args = {"1000"};
  given.ready_timeout = 50ms;
  start(std::move(given));
  const Fd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, sut->pid(), 0)));
  const auto event = wait_for(Happened::server_failed);
  ASSERT_TRUE(event);
  EXPECT_NE(event->text.find("within 50 ms"), std::string::npos) << event->text;
  EXPECT_TRUE(readable_within(pidfd.get(), kDeadline));
}

TEST_F(ForkServerTest, ManyRequestsWaitForABusyServerAndTheSameWorkerTwiceIsRefused) {
  constexpr std::uint64_t kMany = 5000;  // More than a node has actors.
  start();
  ASSERT_EQ(::kill(sut->pid(), SIGSTOP), 0);
  for (std::uint64_t i = 0; i < kMany; ++i) ASSERT_TRUE(sut->fork(request(i, {})));
  EXPECT_EQ(sut->fork(request(0, {})).error().kind, ErrorKind::invalid);
  EXPECT_EQ(sut->fork(request(kMany - 1, {})).error().kind, ErrorKind::invalid);
}

TEST_F(ForkServerTest, RequestThatDoesNotFitAPacketIsRefused) {
  start();
  EXPECT_EQ(sut->fork(request(1, {{"LARGE", std::string(kPacketBytesMax, 'x')}})).error().kind, ErrorKind::invalid);
  EXPECT_EQ(sut->fork(request(1, {{"A=B", ""}})).error().kind, ErrorKind::invalid);
}

TEST_F(ForkServerTest, LargeRequestsBeyondTheSocketsBufferAllArrive) {
  start();
  const std::string large(50'000, 'x');
  for (std::uint64_t i = 0; i < 12; ++i)
    ASSERT_TRUE(sut->fork(request(i, {{"ACT", "exit"}, {"CODE", "0"}, {"LARGE", large}})));
  for (int i = 0; i < 12; ++i) ASSERT_TRUE(wait_for(Happened::exited));
}

}  // namespace
}  // namespace paceline::process
