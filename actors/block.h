#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <type_traits>
#include <vector>

#include "actors/serialise.h"

namespace paceline::actors {

/// As what an argument travels whose parameter is a std::span<const T> of numbers: on the caller's side a view of
/// anything contiguous (a vector, an array, a matrix with `data()` and `size()`), on the other it owns what the span
/// shows.
template <class T>
class Block {
 public:
  Block() = default;
  template <class Range>
  requires(!std::same_as<std::remove_cvref_t<Range>, Block> &&
           requires(const Range& range) {
             { range.data() } -> std::convertible_to<const T*>;
             { range.size() } -> std::convertible_to<std::size_t>;
           }) Block(const Range& range)
      : view_(range.data(), static_cast<std::size_t>(range.size())) {}  // NOLINT(google-explicit-constructor)
  Block(Block&&) noexcept = default;
  Block& operator=(Block&&) noexcept = default;

  operator std::span<const T>() const { return view_; }  // NOLINT(google-explicit-constructor)

  void save(ByteWriter& archive) const {
    archive(cereal::make_size_tag(static_cast<cereal::size_type>(view_.size())));
    archive.write(view_.data(), view_.size_bytes());
  }
  void load(ByteReader& archive) {
    cereal::size_type size = 0;
    archive(cereal::make_size_tag(size));
    archive.check_count(static_cast<std::size_t>(size));
    own_.resize(static_cast<std::size_t>(size));
    archive.read(own_.data(), own_.size() * sizeof(T));
    view_ = own_;
  }

 private:
  std::span<const T> view_;
  std::vector<T> own_;
};

}  // namespace paceline::actors
