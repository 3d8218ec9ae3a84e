#pragma once

#include <sys/socket.h>

#include <optional>
#include <string>
#include <utility>

#include "runtime/base/result.h"

namespace paceline::transport {

enum class Scheme { ipc, tcp };

/// Which of the two it is; `invalid` for all others, and for an ipc address without an absolute path.
Result<Scheme> scheme_of(const std::string& address);

/// The parts of "tcp://host:port"; brackets of IPv6 are taken off.
std::pair<std::string, std::string> host_and_port(const std::string& address);

/// An address as the system's calls take and give it.
struct SocketName {
  sockaddr_storage bytes{};
  socklen_t size = sizeof(sockaddr_storage);
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&bytes); }
};

/// nullopt: a host that is no number (a look-up of its name would wait), or a port that is none.
std::optional<SocketName> socket_name(const std::string& host, const std::string& port);

/// For ipc: the socket's directory must exist, be ours and closed to others (0700), and the path short enough for the
/// system (107 bytes). `invalid` names the mend.
Result<void> check_ipc_directory(const std::string& address);

/// For ipc: whether somebody listens there now, be it one who stands still. What a dead process left behind is nobody.
Result<bool> has_listener(const std::string& address);

/// For ipc: `invalid` if somebody listens there now. ZeroMQ would take the path away from them without a word.
Result<void> check_ipc_unused(const std::string& address);

}  // namespace paceline::transport
