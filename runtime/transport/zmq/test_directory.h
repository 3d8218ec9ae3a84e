#pragma once

#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>

namespace paceline::transport {

/// A fresh directory of mode 0700 for a test's sockets and files, removed with all that is in it.
class TestDirectory {
 public:
  TestDirectory() {
    std::string name = "/tmp/paceline-transport-XXXXXX";
    path = ::mkdtemp(name.data());
  }
  ~TestDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  TestDirectory(const TestDirectory&) = delete;
  TestDirectory& operator=(const TestDirectory&) = delete;

  std::string ipc(const std::string& name) const { return "ipc://" + (path / name).string(); }

  std::filesystem::path path;
};

}  // namespace paceline::transport
