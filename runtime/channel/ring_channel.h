#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>

#include "runtime/channel/channel.h"
#include "runtime/channel/ring.h"
#include "runtime/process/fd.h"

namespace paceline::channel {

/// A channel of two rings in one memfd, one each way. Its maker sends descriptors() to the other process over a Unix
/// socket, which opens it from them.
///
/// What comes from the other end is copied whole before anybody reads it, and may be anything: a ring that holds what
/// is no message ends the channel, not the process. The memory is sealed against shrinking and allocated from the
/// start, so that no access can fault. A forked child must not use its parent's channel; it is told so.
class RingChannel final : public Channel {
 public:
  struct Options {
    std::uint64_t to_maker = 16 << 10;  ///< Bytes of the ring that the maker reads; rounded up to a power of two pages.
    std::uint64_t from_maker = 16 << 10;
    bool other_has_bell = false;  ///< The other end sleeps in an event loop, too; else in receive() and send() only.
  };

  /// `infeasible`: no memory; `internal`: no descriptors.
  static Result<std::unique_ptr<RingChannel>> create(const Options& options);
  /// From what descriptors() of the other end gave. `invalid` if they are none of a channel.
  static Result<std::unique_ptr<RingChannel>> open(std::vector<process::Fd> descriptors);
  ~RingChannel() override;
  RingChannel(const RingChannel&) = delete;
  RingChannel& operator=(const RingChannel&) = delete;

  /// For the other process, in the order in which open() wants them.
  std::vector<process::BorrowedFd> descriptors() const;
  /// They have been: what only the other process needs is closed.
  void are_sent() { memory_.reset(); }

  Result<void> send(std::span<const Frame> frames, Duration patience) override;
  Result<bool> receive(Message& message, Duration timeout) override;
  /// As receive() without waiting, of a thread that will look again soon: the descriptor need not become readable until
  /// a receive() has found nothing.
  Result<bool> look(Message& message);
  /// Of a thread that has looked: the descriptor is readable no more.
  void silence();
  int descriptor() const override { return own_bell_.get(); }

  /// How many of the last messages that were sent the other end has not taken, once it is gone: it has begun nothing of
  /// them. Of the sending thread.
  std::uint64_t untaken() const;

  /// How often receive() and send() look before they sleep; none while a core would be taken from somebody.
  void set_spins(int spins) { spins_ = spins; }

 private:
  struct Mapping;
  RingChannel(std::unique_ptr<Mapping> mapping, process::Fd memory, process::Fd own_bell, process::Fd other_bell,
              bool maker);
  Result<void> stream(std::span<const Frame> frames, Duration patience);
  bool take(const RingReader::Fragment& fragment);
  Result<bool> next(Message& message);
  Result<void> check_owner() const;
  bool rest_on_bell();
  void clear_bell();

  std::unique_ptr<Mapping> mapping_;
  process::Fd memory_;  ///< The maker's, to be sent.
  process::Fd own_bell_, other_bell_;
  RingWriter writer_;
  RingReader reader_;
  pid_t owner_;
  std::uint64_t sent_ = 0;  ///< Messages.
  Message partial_;         ///< What came of a message so far, in its first `frames_` frames.
  std::size_t frames_ = 0;
  bool frame_open_ = false;  ///< The last of them lacks a part.
  std::uint64_t partial_bytes_ = 0;
  std::optional<Error> broken_;   ///< What came; the receiving thread's.
  std::optional<Error> cut_off_;  ///< What was sent; the sending thread's.
  int spins_ = 0;
  bool may_ring_ = true;  ///< It has rested since the bell was cleared.
};

}  // namespace paceline::channel
