#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/process/fd.h"

namespace paceline::process {

/// Bounds of one packet; a larger one is refused by both sides.
inline constexpr std::size_t kPacketBytesMax = 64 * 1024;
inline constexpr std::size_t kPacketFdsMax = 64;

/// Sends `bytes` (1..kPacketBytesMax) with descriptors (at most kPacketFdsMax) over a Unix socket (SOCK_SEQPACKET), all
/// or nothing; the descriptors stay the caller's. Blocks as the socket does. `invalid`: out of bounds; `overloaded`: a
/// non-blocking socket's buffer is full; `disconnected`: the peer hung up (no SIGPIPE).
Result<void> send_with_fds(BorrowedFd socket, std::string_view bytes, const std::vector<BorrowedFd>& fds);

struct Packet {
  std::string bytes;
  std::vector<Fd> fds;    ///< Close-on-exec.
  bool fds_lost = false;  ///< This process has as many open as it may: none came.
};

/// One packet with its descriptors. `timeout_ms` < 0 waits for ever, 0 not at all. `disconnected` when the peer hung up
/// and everything that it had sent was received; `timed_out`; `invalid`: beyond the bounds, or its descriptors were
/// lost (they are closed).
Result<Packet> receive_with_fds(BorrowedFd socket, int timeout_ms);
/// For who can go on without its descriptors, see Packet::fds_lost.
Result<Packet> receive_perhaps_without_fds(BorrowedFd socket, int timeout_ms);

}  // namespace paceline::process
