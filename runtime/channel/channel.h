#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/base/instant.h"
#include "runtime/base/result.h"

namespace paceline::channel {

using Frame = std::vector<std::byte>;
/// One or more frames: the encoded envelope first, then bulk bytes.
using Message = std::vector<Frame>;

/// A two-way connection between two processes of one host: what is sent arrives once, in order, or send() says why not.
/// Nothing is dropped: who finds no room waits for it, with a deadline of its own. It does not notice the other
/// process' end; whoever made the channel watches that, and what was sent before it can still be received.
///
/// Made over what connects the processes anyway (a Unix socket, ZeroMQ). Two ways of one contract: RingChannel through
/// shared memory, ZmqChannel where there is none. Of each end one thread at a time sends, and one receives.
class Channel {
 public:
  /// More frames in one message are no message of ours.
  static constexpr std::size_t kFramesMax = 64;
  /// Of one message, all frames together.
  static constexpr std::uint64_t kMessageBytesMax = std::uint64_t{1} << 30;

  virtual ~Channel() = default;

  /// Blocks while the other end does not read, at most `patience` (0: not at all; negative: for ever); then
  /// `overloaded`, and nothing of the message was sent. `invalid`: no frame, or beyond the bounds. `disconnected`: this
  /// end is a forked copy, what came from the other end is broken, or a message was given up half-way.
  virtual Result<void> send(std::span<const Frame> frames, Duration patience) = 0;

  /// The next message, into `message`, whose memory is used again. False if none came within `timeout` (0: do not wait;
  /// negative: for ever). `disconnected` when the channel is broken; it remains so.
  virtual Result<bool> receive(Message& message, Duration timeout) = 0;

  /// For event loops: a descriptor that becomes readable once there is something to receive, after receive() without
  /// waiting found nothing, and stays readable until it finds nothing again.
  virtual int descriptor() const = 0;

 protected:
  /// `invalid`: what no channel takes.
  static Result<void> check_bounds(std::span<const Frame> frames);
};

/// Whether processes speak through shared memory; else PACELINE_CHANNELS says that all goes over ZeroMQ.
bool shares_memory();

}  // namespace paceline::channel
