// Driver, agent and workers as real processes: the script checks the answers, the test runs the agent.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>

#include "actors/test_support/mini_agent.h"

namespace paceline::actors {
namespace {

using Clock = std::chrono::steady_clock;

TEST(ActorsEndToEnd, AScriptRunsItsActorsAndTasksInRealProcesses) {
  char pattern[] = "/tmp/paceline-actors-XXXXXX";
  const std::string directory = mkdtemp(pattern);
  auto agent = MiniAgent::start(directory, process_transport());
  ASSERT_TRUE(agent) << agent.error().text;

  const pid_t driver = fork();
  if (driver == 0) {
    setenv(kClusterEnv, directory.c_str(), 1);
    setenv("TSAN_OPTIONS", "halt_on_error=1", 0);  // Workers have it, too: a race ends them, and so the test.
    execl(PACELINE_ACTORS_SCRIPT, PACELINE_ACTORS_SCRIPT, "argument", nullptr);
    _exit(127);
  }
  const auto deadline = Clock::now() + std::chrono::seconds(60);
  int status = 0;
  pid_t ended = 0;
  while (ended == 0 && Clock::now() < deadline) {
    (*agent)->step(20);
    ended = waitpid(driver, &status, WNOHANG);
  }
  if (ended == 0) {
    kill(driver, SIGKILL);
    waitpid(driver, &status, 0);
  }
  EXPECT_EQ(ended, driver) << "the script did not end in time";
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  // The driver is gone: so are its workers.
  while ((*agent)->workers() > 0 && Clock::now() < deadline) (*agent)->step(20);
  EXPECT_EQ((*agent)->workers(), 0u);
  agent->reset();
  if (!testing::Test::HasFailure()) std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace paceline::actors
