#include "runtime/transport/zmq/address.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>

#include <gtest/gtest.h>

#include "runtime/base/test_directory.h"

namespace paceline::transport {
namespace {

using test::TestDirectory;

TEST(Address, OnlyTcpAndAbsoluteIpcAreAddresses) {
  EXPECT_EQ(scheme_of("tcp://127.0.0.1:80").value(), Scheme::tcp);
  EXPECT_EQ(scheme_of("tcp://*:*").value(), Scheme::tcp);
  EXPECT_EQ(scheme_of("tcp://[::1]:65535").value(), Scheme::tcp);
  EXPECT_EQ(scheme_of("ipc:///run/x").value(), Scheme::ipc);
  for (const char* bad : {"", "ipc://", "ipc://x", "ipc://@abstract", "ipc://*", "inproc://a", "udp://a:1", "/run/x",
                          "tcp://a", "tcp://a:0", "tcp://a:99999", "tcp://:80"}) {
    ASSERT_FALSE(scheme_of(bad)) << bad;
    EXPECT_EQ(scheme_of(bad).error().kind, ErrorKind::invalid);
  }
}

TEST(Address, IpcDirectoryOfMode0700IsFine) {
  TestDirectory directory;
  EXPECT_TRUE(check_ipc_directory(directory.ipc("a")));
}

TEST(Address, IpcDirectoryOpenToOthersIsRefusedWithTheMend) {
  TestDirectory directory;
  ASSERT_EQ(::chmod(directory.path.c_str(), 0755), 0);
  const auto result = check_ipc_directory(directory.ipc("a"));
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().text.find("chmod 700 " + directory.path.string()), std::string::npos) << result.error().text;
}

TEST(Address, IpcDirectoryThatIsALinkOrMissingIsRefused) {
  TestDirectory directory;
  std::filesystem::create_directory_symlink(directory.path, directory.path / "link");
  EXPECT_FALSE(check_ipc_directory(directory.ipc("link/a")));
  const auto missing = check_ipc_directory(directory.ipc("missing/a"));
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().text.find("mkdir -m 700"), std::string::npos);
}

TEST(Address, IpcPathBeyondTheSystemsLimitIsRefused) {
  TestDirectory directory;
  const auto result = check_ipc_directory(directory.ipc(std::string(108, 'a')));
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().text.find("107"), std::string::npos);
}

TEST(Address, WhatADeadListenerLeftIsNoObstacleAndALivingOneIs) {
  TestDirectory directory;
  const std::string path = (directory.path / "s").string();
  const int listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::memcpy(name.sun_path, path.c_str(), path.size() + 1);
  ASSERT_EQ(::bind(listener, reinterpret_cast<sockaddr*>(&name), sizeof name), 0);
  ASSERT_EQ(::listen(listener, 1), 0);
  const auto living = check_ipc_unused("ipc://" + path);
  ::close(listener);
  ASSERT_FALSE(living);
  EXPECT_NE(living.error().text.find("in use"), std::string::npos);
  EXPECT_TRUE(check_ipc_unused("ipc://" + path));
  EXPECT_TRUE(check_ipc_unused(directory.ipc("never")));
}

}  // namespace
}  // namespace paceline::transport
