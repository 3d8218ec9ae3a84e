#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "runtime/base/instant.h"
#include "runtime/base/result.h"
#include "runtime/link/delay_window.h"
#include "runtime/link/lanes.h"
#include "runtime/link/link_wire.h"
#include "runtime/transport/transport.h"

namespace paceline::link {

/// What goes on a connection as one message: a word of the link, and bytes that stay where they are.
struct Packet {
  Frame word;
  std::vector<transport::Piece> pieces;
};

/// The sending half of a link: keeps each message, where it lies, until the other end has all of it, and decides what
/// goes next. Units (messages and chunks) are numbered per lane; a lower class goes when no higher one has something
/// that may go; a message's bulk goes behind it. Pure.
///
/// Bounds: waiting_bytes_max of messages that are kept, of each class, what goes in chunks not counted (it was its
/// sender's own, and stays where it is), plus one message; units under way, by the receiver's credit and, if they are
/// large, by the window: messages by all of it, bulk by what they leave.
class Outbox {
 public:
  struct Options {
    std::size_t chunk_bytes = std::size_t{256} << 10;
    std::size_t inline_bytes = std::size_t{128} << 10;  ///< Of one message, with it and not in chunks.
    std::size_t waiting_bytes_max = std::size_t{256} << 20;
    std::uint64_t message_bytes_max = std::uint64_t{64} << 30;
    DelayWindow::Options window{};
  };

  /// `link`: of the end whose it is.
  Outbox(std::uint64_t link, Options options) : link_(link), options_(options), window_(options.window) {}

  /// A message of a frame for each piece. `invalid`: no frame, too many, or too large; `overloaded`: too much is kept
  /// already. Then `frames` are untouched.
  Result<void> add(Class of, std::vector<transport::Piece>&& frames);
  /// The next unit that may go; it counts as under way.
  std::optional<Packet> next(Instant now);
  /// What the other end has. `invalid`: it cannot have that.
  Result<void> on_receipts(const PerLane<Receipt>& receipts, Instant now);
  /// On a new connection: what is not acknowledged goes again.
  void rewind();

  /// Units that went, of each lane.
  PerLane<std::uint64_t> sent() const;
  /// Nothing is kept: everything has been acknowledged.
  bool empty() const;
  std::uint64_t bytes_under_way() const { return heads_under_way_ + bulk_under_way_; }
  std::size_t window_bytes() const { return window_.bytes(); }

 private:
  struct Outgoing {
    std::vector<transport::Piece> frames;
    std::uint64_t bulk = 0;  ///< Bit i: frame i goes in chunks.
    std::uint64_t head = 0;  ///< Its number in the class' lane; chunks, below, in the bulk lane.
    std::uint64_t head_bytes = 0;
    std::uint64_t first_chunk = 0;
    std::uint64_t chunks = 0;
    std::uint64_t bulk_offset = 0;  ///< Of its first chunk, in bytes of the lane.
  };
  struct Lane {
    std::uint64_t next = 0;  ///< The number of the unit that goes next,
    std::uint64_t end = 0;   ///< and of the one that is added next.
    std::uint64_t acked = 0;
    std::uint64_t next_offset = 0;  ///< The same in bytes, as they count against the credit.
    std::uint64_t end_offset = 0;
    std::uint64_t limit = 0;
  };
  struct UnderWay {
    std::uint64_t number = 0;
    std::uint64_t bytes = 0;
    Instant at;
  };
  /// Where the lane's next chunk begins, or the bytes before it end.
  struct Cursor {
    std::size_t message = 0;
    std::size_t frame = 0;
    std::size_t offset = 0;
  };
  struct Queue {
    std::deque<Outgoing> messages;
    std::size_t bytes = 0;
    Cursor cursor;
  };

  static bool is_bulk(const Outgoing& message, std::size_t frame) { return ((message.bulk >> frame) & 1) != 0; }
  std::optional<Packet> next_head(Class of, Instant now);
  std::optional<Packet> next_chunk(Class of, Instant now);
  bool acknowledge(std::size_t lane, const Receipt& receipt, Instant now);
  void settle_cursor(Queue& queue) const;
  void drop_acknowledged(Class of);

  std::uint64_t link_;
  Options options_;
  DelayWindow window_;
  bool window_full_ = false;
  PerClass<Queue> queues_{};
  PerLane<Lane> lanes_{};
  PerLane<std::deque<UnderWay>> under_way_{};  ///< Large units.
  std::uint64_t heads_under_way_ = 0;
  std::uint64_t bulk_under_way_ = 0;
};

}  // namespace paceline::link
