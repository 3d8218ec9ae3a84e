#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/link/lanes.h"
#include "runtime/link/pulse.h"

namespace paceline::link {

using Frame = std::vector<std::byte>;

/// One end of one link: a process' incarnation, and which of its links this is. Never used again.
struct EndId {
  std::uint64_t incarnation = 0;
  std::uint64_t link = 0;  ///< From 1; 0: none.
  bool operator==(const EndId&) const = default;
};

/// How far a receiver is in a lane.
struct Receipt {
  std::uint64_t units = 0;  ///< Received, without a gap: the number that it waits for.
  std::uint64_t limit = 0;  ///< Credit: the sum of bytes since the link's beginning up to which it takes units.
  bool operator==(const Receipt&) const = default;
};

/// The first word of both ends on every connection.
struct Greeting {
  EndId self;
  EndId other;            ///< The end that the greeter takes this link's other end for; none: it knows of none yet.
  bool is_ready = false;  ///< The greeter has heard the other's greeting on this connection.
  PerLane<Receipt> receipts{};
  PulseAddress pulse{};   ///< Where the greeter's process says that it runs.
  std::string address{};  ///< Where the greeter listens; empty: nowhere.
};

/// Acknowledgement, credit and heartbeat.
struct State {
  bool asks = false;  ///< Is to be answered with one that does not.
  std::uint64_t stamp = 0;
  std::uint64_t echo = 0;         ///< The stamp of what it answers; 0: it answers nothing.
  PerLane<std::uint64_t> sent{};  ///< Units that went before it: where fewer came, some were lost.
  PerLane<Receipt> receipts{};
};

/// A message; its frames that are inline are the frames behind this one.
struct Head {
  struct FrameSize {
    std::uint64_t bytes = 0;
    bool is_inline = true;
  };
  Class of = Class::requests;
  std::uint64_t number = 0;
  std::vector<FrameSize> frames;
};

/// A part of the bulk of a class' messages, which is the next frame.
struct Chunk {
  Class of = Class::requests;
  std::uint64_t number = 0;
};

/// The link ends, and its end sends and takes nothing more.
struct Farewell {};

/// What the first frame of everything on a connection says.
using Said = std::variant<Greeting, State, Head, Chunk, Farewell>;

/// `link`: the number of the sender's end. Of a connection both ends learn at different times, so that a word may come
/// by one that is already the next link's.
Frame encode(std::uint64_t link, const Said& said);
struct Word {
  std::uint64_t link = 0;
  Said said;
};
/// `invalid`: no word of this version. The input may be anything.
Result<Word> decode(std::span<const std::byte> frame);

}  // namespace paceline::link
