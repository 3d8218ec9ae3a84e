#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace paceline {

/// Bytes in memory that lives as long as somebody has its keeper, and does not change meanwhile: passed on, and sent,
/// without a copy. The last one may let go of a keeper on any thread.
struct Piece {
  std::shared_ptr<const void> keeper;
  std::span<const std::byte> bytes;

  const std::byte* data() const { return bytes.data(); }
  std::size_t size() const { return bytes.size(); }
  bool empty() const { return bytes.empty(); }
};

/// All of what `owner` has: a vector of bytes, bytes of a pool.
template <class Owner>
Piece piece_of(std::shared_ptr<Owner> owner) {
  const std::span<const std::byte> bytes(owner->data(), owner->size());
  return {std::move(owner), bytes};
}
inline Piece piece_of(std::vector<std::byte> bytes) {
  return piece_of(std::make_shared<const std::vector<std::byte>>(std::move(bytes)));
}

}  // namespace paceline
