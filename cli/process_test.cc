#include "cli/process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "runtime/base/test_directory.h"

namespace paceline::cli {
namespace {

class ProcessTest : public ::testing::Test {
 protected:
  std::string output() const {
    std::ifstream in(folder + "/out");
    return std::string(std::istreambuf_iterator<char>(in), {});
  }
  Ended run(const std::string& script, std::vector<std::pair<std::string, std::string>> variables = {}) {
    return run_child({.command = {"sh", "-c", script}, .variables = std::move(variables), .output = folder + "/out"})
        .value();
  }

  test::TestDirectory directory;
  std::string folder = directory.path;
};

TEST_F(ProcessTest, TheExitStatusIsReported) {
  const Ended ended = run("exit 3");
  EXPECT_EQ(ended.code, 3);
  EXPECT_EQ(to_string(ended), "exit status 3");
}

TEST_F(ProcessTest, ASignalIsNamed) {
  const Ended ended = run("kill -SEGV $$");
  EXPECT_EQ(ended.signal, SIGSEGV);
  EXPECT_NE(to_string(ended).find("Segmentation fault"), std::string::npos);
}

TEST_F(ProcessTest, OutputAndVariablesReachTheChild) {
  ::setenv("PACELINE_TEST_OLD", "old", 1);
  run("echo $PACELINE_TEST_OLD $PACELINE_TEST_NEW; echo error >&2",
      {{"PACELINE_TEST_OLD", "changed"}, {"PACELINE_TEST_NEW", "new"}});
  EXPECT_EQ(output(), "changed new\nerror\n");
}

TEST_F(ProcessTest, AProgramThatDoesNotExistIsAnErrorAtOnce) {
  const auto child = spawn({.command = {"/nowhere/program"}});
  ASSERT_FALSE(child);
  EXPECT_EQ(child.error().kind, ErrorKind::not_found);
  EXPECT_NE(child.error().text.find("/nowhere/program"), std::string::npos);
}

TEST_F(ProcessTest, AnInterruptSentToUsIsPassedOn) {
  // The child interrupts us; it ends well only if that comes back to it.
  const Ended ended = run("trap 'exit 7' INT; kill -INT $PPID; while :; do sleep 0.01; done");
  EXPECT_EQ(ended.code, 7);
}

TEST_F(ProcessTest, AStubbornChildIsKilled) {
  const auto child = spawn(
      {.command = {"sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.01; done"}, .output = folder + "/out"});
  ASSERT_TRUE(child);
  while (output().empty()) ::usleep(1000);
  end_child(*child, std::chrono::milliseconds(20));
  EXPECT_NE(::kill(*child, 0), 0);
}

TEST_F(ProcessTest, ALogsTailIsItsLastLines) {
  run("seq 1 100");
  EXPECT_EQ(tail_of(folder + "/out", 2), "  99\n  100\n");
  EXPECT_EQ(tail_of(folder + "/none", 2), "");
}

}  // namespace
}  // namespace paceline::cli
