#include "runtime/transport/zmq/address.h"

#include <netdb.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>

namespace paceline::transport {
namespace {

constexpr std::string_view kIpc = "ipc://";
constexpr std::string_view kTcp = "tcp://";

std::string path_of(const std::string& address) { return address.substr(kIpc.size()); }

/// A port of 1 to 65535 or `*` behind the last colon (ZeroMQ would take 99999 modulo 65536).
bool has_port(const std::string& address) {
  const auto colon = address.rfind(':');
  const std::string port = address.substr(colon + 1);
  if (colon <= kTcp.size()) return false;
  if (port == "*") return true;
  if (port.empty() || port.size() > 5 || port.find_first_not_of("0123456789") != std::string::npos) return false;
  const int number = std::stoi(port);
  return number >= 1 && number <= 65535;
}

}  // namespace

Result<Scheme> scheme_of(const std::string& address) {
  if (address.starts_with(kTcp) && has_port(address)) return Scheme::tcp;
  if (address.starts_with(kTcp))
    return fail(ErrorKind::invalid, "address '" + address + "': use tcp://host:port with a port of 1 to 65535, or *");
  if (address.starts_with(kIpc) && address.size() > kIpc.size() && address[kIpc.size()] == '/') return Scheme::ipc;
  return fail(ErrorKind::invalid, "address '" + address + "': use tcp://host:port or ipc:///absolute/path");
}

std::pair<std::string, std::string> host_and_port(const std::string& address) {
  const auto begin = address.find("//") + 2;
  const auto colon = address.rfind(':');
  std::string host = address.substr(begin, colon - begin);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return {host, address.substr(colon + 1)};
}

std::optional<SocketName> socket_name(const std::string& host, const std::string& port) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), port.c_str(), &hints, &found) != 0) return std::nullopt;
  SocketName name;
  name.size = found->ai_addrlen;
  std::memcpy(&name.bytes, found->ai_addr, found->ai_addrlen);
  ::freeaddrinfo(found);
  return name;
}

Result<void> check_ipc_directory(const std::string& address) {
  const std::string path = path_of(address);
  if (path.size() >= sizeof(sockaddr_un::sun_path)) {
    return fail(ErrorKind::invalid,
                address + ": the path has " + std::to_string(path.size()) + " bytes, the system allows " +
                    std::to_string(sizeof(sockaddr_un::sun_path) - 1) + ": use a shorter runtime directory");
  }
  const std::string directory = std::filesystem::path(path).parent_path().string();
  struct stat status {};
  if (::lstat(directory.c_str(), &status) != 0) {
    return fail(ErrorKind::invalid,
                address + ": directory " + directory + ": " + std::strerror(errno) + ": mkdir -m 700 " + directory);
  }
  if (!S_ISDIR(status.st_mode)) return fail(ErrorKind::invalid, address + ": " + directory + " is no directory");
  if (status.st_uid != ::geteuid()) {
    return fail(ErrorKind::invalid,
                address + ": directory " + directory + " belongs to another user: use one of your own");
  }
  if ((status.st_mode & 077) != 0) {
    return fail(ErrorKind::invalid,
                address + ": directory " + directory + " is open to others: chmod 700 " + directory);
  }
  return {};
}

Result<bool> has_listener(const std::string& address) {
  const std::string path = path_of(address);
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  if (path.size() >= sizeof(name.sun_path)) return check_ipc_directory(address).map([] { return false; });
  std::memcpy(name.sun_path, path.c_str(), path.size() + 1);
  const int probe = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (probe < 0) return fail_errno("socket");
  const bool answered = ::connect(probe, reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0 || errno == EAGAIN;
  ::close(probe);
  return answered;
}

Result<void> check_ipc_unused(const std::string& address) {
  const auto answered = has_listener(address);
  if (!answered) return tl::unexpected(answered.error());
  if (!*answered) return {};
  return fail(ErrorKind::invalid,
              address + ": address in use: another process listens there: stop it, or use another runtime directory");
}

}  // namespace paceline::transport
