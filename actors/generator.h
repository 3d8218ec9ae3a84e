#pragma once

#include "actors/coroutine.h"
#include "actors/next_iterator.h"

#ifdef PACELINE_HAS_COROUTINES

#include <memory>
#include <type_traits>

namespace paceline {

/// What gives values one after the other: a function or a method that returns one gives each with `co_yield`, and its
/// caller has a Stream<T> of them (actors/stream.h). The next value is not computed before somebody wants it, but for
/// as many as a stream may be ahead. Where it is called directly it is a range of its values, to be read once. Waiting
/// within is by Future::get(): nothing else runs on its thread.
template <class T>
class [[nodiscard]] Generator {
 public:
  static_assert(std::is_object_v<T> && std::is_same_v<T, std::remove_cv_t<T>>, "a Generator gives values");

  struct promise_type {
    Generator get_return_object() { return Generator(std::coroutine_handle<promise_type>::from_promise(*this)); }
    std::suspend_always initial_suspend() const noexcept { return {}; }
    std::suspend_always final_suspend() const noexcept { return {}; }
    std::suspend_always yield_value(T& given) noexcept {
      value = std::addressof(given);
      return {};
    }
    std::suspend_always yield_value(T&& given) noexcept {
      value = std::addressof(given);
      return {};
    }
    std::suspend_always yield_value(const T& given) { return yield_value(copy.emplace(given)); }
    void return_void() const noexcept {}
    void unhandled_exception() { throw; }
    template <class Awaited>
    void await_transform(Awaited&&) = delete;  // A generator waits by Future::get().

    T* value = nullptr;  ///< Of the last co_yield.
    std::optional<T> copy;
  };

  Generator(Generator&& other) noexcept : coroutine_(std::exchange(other.coroutine_, nullptr)) {}
  Generator& operator=(Generator&& other) noexcept {
    std::swap(coroutine_, other.coroutine_);
    return *this;
  }
  // Ends it where it is.
  ~Generator() {
    if (coroutine_) coroutine_.destroy();
  }

  /// The next value, until it is asked for another one; nullptr: there is none. What it throws comes from here.
  T* next() {
    if (coroutine_.done()) return nullptr;
    coroutine_.resume();
    return coroutine_.done() ? nullptr : coroutine_.promise().value;
  }

  using Iterator = actors::NextIterator<Generator>;
  Iterator begin() { return Iterator(*this); }    ///< For a loop over the values that are left.
  actors::NothingMore end() const { return {}; }  ///< Behind the last one.

 private:
  explicit Generator(std::coroutine_handle<promise_type> coroutine) : coroutine_(coroutine) {}
  std::coroutine_handle<promise_type> coroutine_;
};

}  // namespace paceline

#endif
