#include "runtime/transport/zmq/reach_probes.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "runtime/transport/zmq/address.h"

namespace paceline::transport {
namespace {

Reach reach_of(int error) {
  if (error == 0) return Reach::listens;
  return error == ECONNREFUSED ? Reach::refuses : Reach::unknown;
}

}  // namespace

Reach ReachProbes::reach(const std::string& address) {
  const auto asked = under_way_.find(address);
  if (asked == under_way_.end()) return begin(address);
  pollfd ready{asked->second.get(), POLLOUT, 0};
  if (::poll(&ready, 1, 0) <= 0) return Reach::unknown;
  int error = 0;
  socklen_t size = sizeof error;
  const bool known = ::getsockopt(asked->second.get(), SOL_SOCKET, SO_ERROR, &error, &size) == 0;
  under_way_.erase(asked);
  return known ? reach_of(error) : Reach::unknown;
}

Reach ReachProbes::begin(const std::string& address) {
  const auto scheme = scheme_of(address);
  if (!scheme) return Reach::unknown;
  if (*scheme == Scheme::ipc) return check_ipc_unused(address) ? Reach::refuses : Reach::listens;
  const auto [host, port] = host_and_port(address);
  auto name = socket_name(host, port);
  if (!name) return Reach::unknown;
  process::Fd probe(::socket(name->bytes.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int error = probe && ::connect(probe.get(), name->get(), name->size) == 0 ? 0 : errno;
  if (!probe || error != EINPROGRESS) return probe ? reach_of(error) : Reach::unknown;
  under_way_[address] = std::move(probe);
  return Reach::unknown;
}

}  // namespace paceline::transport
