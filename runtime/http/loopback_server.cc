#include "runtime/http/loopback_server.h"

#include <httplib.h>

#include <chrono>
#include <utility>

#include "runtime/http/token.h"

namespace paceline::http {
namespace {

constexpr const char* kLoopback = "127.0.0.1";
constexpr std::size_t kBodyMax = 4096;        // Nobody has anything to send.
constexpr std::chrono::seconds kPatience{5};  // With who asks.

}  // namespace

Result<LoopbackServer> LoopbackServer::open(Options options) {
  auto server = std::make_unique<httplib::Server>();
  server->new_task_queue = [] { return new httplib::ThreadPool(2); };
  server->set_socket_options([](socket_t) {});  // httplib would share the port with whoever has it already.
  server->set_payload_max_length(kBodyMax);
  server->set_read_timeout(kPatience);
  server->set_write_timeout(kPatience);
  server->set_keep_alive_max_count(1);
  const int wanted = options.port;
  const std::string path = options.path;
  server->Get(path, [options = std::move(options)](const httplib::Request& request, httplib::Response& response) {
    if (!same_secret(request.get_header_value("Authorization"), "Bearer " + options.token)) {
      response.status = 401;
      response.set_header("WWW-Authenticate", "Bearer");
      response.set_content("the token is missing, or wrong\n", "text/plain");
      return;
    }
    const auto text = options.text();
    if (!text) response.status = 503;
    response.set_content(text ? *text : text.error().text + "\n", text ? options.content_type : "text/plain");
  });
  const bool bound = wanted == 0 || server->bind_to_port(kLoopback, wanted);
  const int port = wanted == 0 ? server->bind_to_any_port(kLoopback) : wanted;
  if (!bound || port <= 0)
    return fail(ErrorKind::invalid, "port " + std::to_string(wanted) + " cannot be had: give another one with --port");
  return LoopbackServer(std::move(server), port);
}

LoopbackServer::LoopbackServer(std::unique_ptr<httplib::Server> server, int port)
    : server_(std::move(server)), port_(port) {}
LoopbackServer::LoopbackServer(LoopbackServer&&) noexcept = default;
LoopbackServer::~LoopbackServer() = default;

void LoopbackServer::serve() { server_->listen_after_bind(); }
void LoopbackServer::stop() { server_->stop(); }

}  // namespace paceline::http
