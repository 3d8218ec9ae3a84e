#pragma once

#include <cstddef>
#include <iterator>
#include <type_traits>
#include <utility>

namespace paceline::actors {

/// Behind the last value.
struct NothingMore {};

/// Of a loop over what `source.next()` gives until there is nothing more, each value once: a pointer or an optional.
template <class Source>
class NextIterator {
  using Given = decltype(std::declval<Source&>().next());

 public:
  using reference = decltype(*std::declval<Given&>());
  using value_type = std::remove_reference_t<reference>;
  using pointer = value_type*;
  using difference_type = std::ptrdiff_t;
  using iterator_category = std::input_iterator_tag;

  explicit NextIterator(Source& source) : source_(&source), given_(source.next()) {}
  reference operator*() { return *given_; }
  pointer operator->() { return &*given_; }
  NextIterator& operator++() {
    given_ = source_->next();
    return *this;
  }
  void operator++(int) { ++*this; }
  bool operator==(NothingMore) const { return !given_; }

 private:
  Source* source_;
  Given given_;
};

}  // namespace paceline::actors
