#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/link/lanes.h"
#include "runtime/link/link_wire.h"
#include "runtime/transport/transport.h"

namespace paceline::link {

/// The receiving half of a link: drops what it has already, puts bulk together, gives each message once, in the order
/// of its class, when all its bulk is here. Pure. What comes may be anything: numbers, sizes and credit are checked
/// first.
///
/// Bounds: of each class, head_credit bytes that have come and were not taken, and one message's bulk that is not
/// whole; its memory is asked for as announced but touched only as bytes come.
class Inbox {
 public:
  struct Options {
    std::uint64_t head_credit = std::uint64_t{16} << 20;  ///< Of each class; at least four times what one unit can be.
    std::uint64_t bulk_credit = std::uint64_t{32} << 20;
    std::uint64_t message_bytes_max = std::uint64_t{64} << 30;
  };
  enum class Came { in_order, again, gap };

  explicit Inbox(Options options);

  /// `gap`: a unit before this one was lost with its connection, and this one is not kept. `invalid`: it breaks the
  /// rules. `overloaded`: there is no memory for it.
  Result<Came> on_head(const Head& head, std::span<const transport::Piece> pieces);
  Result<Came> on_chunk(const Chunk& chunk, std::span<const transport::Piece> pieces);
  /// Whether all came that `sent` says has been sent.
  bool has(const PerLane<std::uint64_t>& sent) const;

  /// The next message that is whole, of the highest class first; its credit is given back.
  std::optional<std::vector<Frame>> take();

  PerLane<Receipt> receipts() const;
  /// A message waits for its bulk.
  bool is_waiting() const;
  /// Since the last told(): bytes of large units, and units of all lanes but bulk's, and whether so much credit has
  /// been freed that the sender should know.
  std::uint64_t untold_large() const { return untold_large_; }
  std::uint64_t untold_heads() const { return untold_heads_; }
  bool owes_credit() const;
  void told();

 private:
  struct Incoming {
    std::vector<Frame> frames;
    std::vector<std::uint64_t> missing;  ///< Bytes that each frame lacks.
    std::size_t at = 0;                  ///< The first frame that lacks any.
    std::uint64_t head_bytes = 0;
    bool is_whole() const { return at == frames.size(); }
    void settle();
  };

  Result<Came> place(std::size_t lane, std::uint64_t number, std::uint64_t bytes);
  Result<Incoming> incoming(const Head& head, std::span<const transport::Piece> pieces) const;

  Options options_;
  PerClass<std::deque<Incoming>> messages_{};
  PerLane<std::uint64_t> next_{};   ///< Number of the unit that is to come.
  PerLane<std::uint64_t> come_{};   ///< Bytes of the units that have come,
  PerLane<std::uint64_t> limit_{};  ///< and of those that may come.
  PerLane<std::uint64_t> told_limit_{};
  std::uint64_t untold_large_ = 0;
  std::uint64_t untold_heads_ = 0;
};

}  // namespace paceline::link
