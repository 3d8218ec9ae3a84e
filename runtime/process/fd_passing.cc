#include "runtime/process/fd_passing.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

namespace paceline::process {

Result<void> send_with_fds(BorrowedFd socket, std::string_view bytes, const std::vector<BorrowedFd>& fds) {
  if (bytes.empty() || bytes.size() > kPacketBytesMax)
    return fail(ErrorKind::invalid, "packet of " + std::to_string(bytes.size()) +
                                        " bytes: a packet on a Unix socket has 1 to " +
                                        std::to_string(kPacketBytesMax));
  if (fds.size() > kPacketFdsMax)
    return fail(ErrorKind::invalid, "packet with " + std::to_string(fds.size()) + " descriptors: at most " +
                                        std::to_string(kPacketFdsMax) + " go with one");

  iovec data{const_cast<char*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(kPacketFdsMax * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  if (!fds.empty()) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(fds.size() * sizeof(int));
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
    auto* at = CMSG_DATA(header);
    for (const BorrowedFd fd : fds) {
      const int number = fd.get();
      std::memcpy(at, &number, sizeof number);
      at += sizeof number;
    }
  }

  ssize_t sent;
  do sent = ::sendmsg(socket.get(), &message, MSG_NOSIGNAL);
  while (sent < 0 && errno == EINTR);
  if (sent == static_cast<ssize_t>(bytes.size())) return {};
  if (sent >= 0) return fail(ErrorKind::internal, "a Unix socket took half a packet: it is no SOCK_SEQPACKET socket");
  if (errno == EAGAIN || errno == EWOULDBLOCK)
    return fail(ErrorKind::overloaded, "the Unix socket's buffer is full: the peer does not read");
  if (errno == EPIPE || errno == ECONNRESET) return fail(ErrorKind::disconnected, "the peer of a Unix socket hung up");
  if (errno == EMSGSIZE)
    return fail(ErrorKind::invalid, "packet of " + std::to_string(bytes.size()) +
                                        " bytes is larger than the Unix socket's send buffer (net.core.wmem_default)");
  return fail_errno("send on a Unix socket");
}

Result<Packet> receive_with_fds(BorrowedFd socket, int timeout_ms) {
  auto packet = receive_perhaps_without_fds(socket, timeout_ms);
  if (packet && packet->fds_lost)
    return fail(ErrorKind::invalid,
                "a packet on a Unix socket lost its descriptors: the limit on open files (ulimit -n) is reached");
  return packet;
}

Result<Packet> receive_perhaps_without_fds(BorrowedFd socket, int timeout_ms) {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::milliseconds(std::max(timeout_ms, 0));
  for (;;) {
    pollfd waiting{socket.get(), POLLIN, 0};
    int left = timeout_ms;
    if (timeout_ms > 0) {
      const auto rest = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
      left = static_cast<int>(std::max<std::chrono::milliseconds::rep>(rest.count(), 0));
    }
    const int ready = ::poll(&waiting, 1, left);
    if (ready > 0) break;
    if (ready == 0)
      return fail(ErrorKind::timed_out,
                  "nothing arrived on a Unix socket within " + std::to_string(timeout_ms) + " ms");
    if (errno != EINTR) return fail_errno("poll of a Unix socket");
  }

  Packet packet;
  packet.bytes.resize(kPacketBytesMax);
  iovec data{packet.bytes.data(), packet.bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(kPacketFdsMax * sizeof(int))];
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;

  ssize_t got;
  do got = ::recvmsg(socket.get(), &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  while (got < 0 && errno == EINTR);
  if (got < 0) {
    if (errno == EAGAIN || errno == EWOULDBLOCK)
      return fail(ErrorKind::timed_out, "another reader took the packet of a Unix socket");
    if (errno == ECONNRESET) return fail(ErrorKind::disconnected, "the peer of a Unix socket hung up");
    return fail_errno("receive on a Unix socket");
  }
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof fd, sizeof fd);
      packet.fds.emplace_back(fd);
    }
  }
  const bool is_beyond = packet.fds.size() >= kPacketFdsMax && (message.msg_flags & MSG_CTRUNC) != 0;
  if ((message.msg_flags & MSG_TRUNC) != 0 || is_beyond)
    return fail(ErrorKind::invalid, "a packet on a Unix socket lost a part: more than " +
                                        std::to_string(kPacketBytesMax) + " bytes or " + std::to_string(kPacketFdsMax) +
                                        " descriptors");
  packet.fds_lost = (message.msg_flags & MSG_CTRUNC) != 0;
  if (packet.fds_lost) packet.fds.clear();
  if (got == 0)  // Empty packets are never sent.
    return fail(ErrorKind::disconnected, "the peer of a Unix socket hung up");
  packet.bytes.resize(static_cast<std::size_t>(got));
  return packet;
}

}  // namespace paceline::process
