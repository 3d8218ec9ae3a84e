#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "runtime/base/test_directory.h"

namespace paceline::observe {

/// A folder of its own for each test, removed afterwards.
class FolderTest : public testing::Test {
 protected:
  static std::string text_of(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }
  std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator()));
  }

  /// Runs `body` in a child process in which no file may grow beyond `bytes`: writes fail as on a full disk. True if it
  /// returned true.
  template <class Body>
  static bool with_full_disk(rlim_t bytes, Body body) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::signal(SIGXFSZ, SIG_IGN);
      const rlimit limit{bytes, bytes};
      ::setrlimit(RLIMIT_FSIZE, &limit);
      ::_exit(body() ? 0 : 1);
    }
    int status = -1;
    return ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }

  test::TestDirectory directory;
  std::string folder = directory.path;
};

}  // namespace paceline::observe
