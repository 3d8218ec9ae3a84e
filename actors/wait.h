#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "actors/future.h"

namespace paceline {

/// How many futures wait() waits for, and how long.
struct WaitOptions {
  std::size_t count = 1;              ///< At most as many as there are.
  std::optional<Duration> timeout{};  ///< None: until they are there; 0: it only looks.
};

/// What wait() found. Both lists are in the order of the futures that it was given.
template <class T>
struct Waited {
  std::vector<Future<T>> ready;    ///< Those that are there: `count`, or fewer after the timeout.
  std::vector<Future<T>> pending;  ///< All others, also such as are there.
};

/// How long get() of several futures waits, for all of them together.
struct GetOptions {
  std::optional<Duration> timeout{};  ///< None: until all are there.
};

namespace actors {

template <class T>
std::vector<PendingResultPtr> results_of(const std::vector<Future<T>>& futures) {
  std::vector<PendingResultPtr> results;
  results.reserve(futures.size());
  for (const auto& future : futures) results.push_back(future.pending());
  return results;
}

/// Throws TaskError where one is empty, or is not there in time, with which it is.
void wait_for_each(std::span<const PendingResultPtr> results, const GetOptions& options);
/// `invalid` where there are fewer than that.
void check_wait(std::size_t futures, std::size_t count);

template <class T>
auto value_of(const Future<T>& future) {
  if constexpr (std::is_void_v<T>) {
    future.get();
    return std::monostate{};
  } else {
    return future.get();
  }
}

}  // namespace actors

/// Blocks until `count` of `futures` have their results (or errors), or `timeout` is over, and parts them. Throws
/// TaskError of kind `invalid` where `count` is more than there are, and for an empty future.
template <class T>
Waited<T> wait(std::vector<Future<T>> futures, const WaitOptions& options = {}) {
  actors::check_wait(futures.size(), options.count);
  std::size_t there = 0;
  for (auto future = futures.begin(); future != futures.end() && there < options.count; ++future)
    there += future->ready() ? 1 : 0;  // Throws where it is empty.
  if (there < options.count) {
    const auto results = actors::results_of(futures);
    (void)actors::wait_for_some(results, options.count, options.timeout);
  }
  Waited<T> waited;
  auto kept = futures.begin();  // What is pending stays in its list: it may be long.
  for (auto future = futures.begin(); future != futures.end(); ++future) {
    if (waited.ready.size() < options.count && future->ready()) {
      waited.ready.push_back(std::move(*future));
    } else {
      if (kept != future) *kept = std::move(*future);
      ++kept;
    }
  }
  futures.erase(kept, futures.end());
  waited.pending = std::move(futures);
  return waited;
}

/// The results of all `futures`, in their order. Throws TaskError: the first error of theirs in that order, or
/// `timed_out` with the first one that was not there in time.
template <class T>
auto get(const GetOptions& options, const std::vector<Future<T>>& futures) {
  actors::wait_for_each(actors::results_of(futures), options);
  if constexpr (std::is_void_v<T>) {
    for (const auto& future : futures) future.get();
  } else {
    std::vector<T> values;
    values.reserve(futures.size());
    for (const auto& future : futures) values.push_back(future.get());
    return values;
  }
}
/// The same without a timeout.
template <class T>
auto get(const std::vector<Future<T>>& futures) {
  return get(GetOptions{}, futures);
}

/// The results of several futures of any types, as a tuple (std::monostate for one without a value).
template <class... T>
requires(sizeof...(T) > 0) auto get(const GetOptions& options, const Future<T>&... futures) {
  actors::wait_for_each(std::array{futures.pending()...}, options);
  return std::tuple<decltype(actors::value_of(futures))...>{actors::value_of(futures)...};
}
/// The same without a timeout.
template <class... T>
requires(sizeof...(T) > 0) auto get(const Future<T>&... futures) { return get(GetOptions{}, futures...); }

}  // namespace paceline
