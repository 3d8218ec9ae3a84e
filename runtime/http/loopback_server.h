#pragma once

#include <functional>
#include <memory>
#include <string>

#include "runtime/base/result.h"

namespace httplib {
class Server;
}

namespace paceline::http {

/// Answers `GET` of one path on the loopback device, to who has the token (`Authorization: Bearer TOKEN`). This folder
/// is all that includes httplib.
class LoopbackServer {
 public:
  /// `text` is called by the server's thread, once a request; an error is a 503 with its text.
  struct Options {
    int port = 0;  ///< 0: any that is free.
    std::string token;
    std::string path = "/";
    std::string content_type = "text/plain";
    std::function<Result<std::string>()> text;
  };
  /// `invalid`: the port is in use.
  static Result<LoopbackServer> open(Options options);
  LoopbackServer(LoopbackServer&&) noexcept;
  LoopbackServer& operator=(LoopbackServer&&) = delete;
  ~LoopbackServer();

  int port() const { return port_; }
  /// Answers until stop().
  void serve();
  /// Any thread.
  void stop();

 private:
  LoopbackServer(std::unique_ptr<httplib::Server> server, int port);

  std::unique_ptr<httplib::Server> server_;
  int port_;
};

}  // namespace paceline::http
