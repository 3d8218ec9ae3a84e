#pragma once

#include <stdlib.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <system_error>

namespace paceline::test {

/// A fresh directory of mode 0700 for a test's files and sockets, removed with all that is in it. Its name is short, as
/// those of sockets have to be.
class TestDirectory {
 public:
  TestDirectory() {
    std::string name = "/tmp/paceline-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) throw std::system_error(errno, std::generic_category(), "mkdtemp " + name);
    path = name;
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

}  // namespace paceline::test
