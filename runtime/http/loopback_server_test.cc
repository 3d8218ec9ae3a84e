#include "runtime/http/loopback_server.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

namespace paceline::http {
namespace {

/// What a server on loopback answers to these bytes.
std::string asked(int port, const std::string& request) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::string answer;
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
      ::send(fd, request.data(), request.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(request.size())) {
    char bytes[512];
    for (ssize_t got = 0; (got = ::recv(fd, bytes, sizeof bytes, 0)) > 0;)
      answer.append(bytes, static_cast<std::size_t>(got));
  }
  ::close(fd);
  return answer;
}

std::string get(const std::string& path, const std::string& headers = "") {
  return "GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + headers + "\r\n";
}

class LoopbackServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    thread = std::thread([this] { sut.serve(); });
  }
  void TearDown() override {
    while (asked(sut.port(), get("/")).empty()) std::this_thread::yield();  // What is not serving yet does not stop.
    sut.stop();
    thread.join();
  }

  Result<std::string> text = std::string("up 1\n");
  LoopbackServer sut =
      LoopbackServer::open({0, "secret", "/metrics", "text/plain; version=0.0.4", [this] { return text; }}).value();
  std::thread thread;
};

TEST_F(LoopbackServerTest, WhoHasTheTokenIsAnswered) {
  const std::string answer = asked(sut.port(), get("/metrics", "Authorization: Bearer secret\r\n"));
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200")) << answer;
  EXPECT_NE(answer.find("version=0.0.4"), std::string::npos) << answer;
  EXPECT_TRUE(answer.ends_with("\r\n\r\nup 1\n")) << answer;
}

TEST_F(LoopbackServerTest, OthersAreNot) {
  for (const char* header : {"", "Authorization: Bearer secreT\r\n", "Authorization: secret\r\n"}) {
    const std::string answer = asked(sut.port(), get("/metrics", header));
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 401")) << answer;
    EXPECT_EQ(answer.find("up 1"), std::string::npos);
  }
  EXPECT_TRUE(asked(sut.port(), get("/other", "Authorization: Bearer secret\r\n")).starts_with("HTTP/1.1 404"));
}

TEST_F(LoopbackServerTest, NoAnswerIsA503) {
  text = fail(ErrorKind::timed_out, "the head does not answer");
  const std::string answer = asked(sut.port(), get("/metrics", "Authorization: Bearer secret\r\n"));
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 503")) << answer;
  EXPECT_NE(answer.find("the head does not answer"), std::string::npos);
}

TEST_F(LoopbackServerTest, APortInUseIsRefused) {
  const auto second = LoopbackServer::open({sut.port(), "secret", "/metrics", "text/plain", [this] { return text; }});
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().text.find("--port"), std::string::npos);
}

TEST_F(LoopbackServerTest, WhatIsNoRequestEndsNothing) {
  asked(sut.port(), "\xff\xfe\r\n\r\n");
  asked(sut.port(), get("/metrics", "Authorization: " + std::string(100'000, 'x') + "\r\n"));
  EXPECT_TRUE(asked(sut.port(), get("/metrics", "Authorization: Bearer secret\r\n")).starts_with("HTTP/1.1 200"));
}

}  // namespace
}  // namespace paceline::http
