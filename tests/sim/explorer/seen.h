#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace paceline::explorer {

/// States that a walk has been in, each known by a 64-bit hash of all that it is made of. A walk asks for each of
/// millions a dozen times: one place in memory to look at.
class Seen {
 public:
  /// Of a state's bytes: false if it was there before.
  bool add(const std::string& bytes) {
    if (2 * size_ >= places_.size()) grow();
    const bool added = put(std::max<std::size_t>(std::hash<std::string>{}(bytes), 1));
    size_ += added;
    return added;
  }
  std::size_t size() const { return size_; }

 private:
  bool put(std::size_t hash) {
    const std::size_t mask = places_.size() - 1;
    std::size_t at = hash & mask;
    while (places_[at] != 0 && places_[at] != hash) at = (at + 1) & mask;
    return std::exchange(places_[at], hash) == 0;
  }

  void grow() {
    const auto before = std::exchange(places_, std::vector<std::size_t>(2 * places_.size()));
    for (const std::size_t hash : before) {
      if (hash != 0) put(hash);
    }
  }

  std::vector<std::size_t> places_ = std::vector<std::size_t>(1024);  ///< 0: a free one. A power of two.
  std::size_t size_ = 0;
};

}  // namespace paceline::explorer
