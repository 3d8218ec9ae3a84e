#pragma once

#include <cstddef>
#include <functional>
#include <iterator>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "actors/async.h"
#include "actors/cancel.h"
#include "actors/causes.h"
#include "actors/gathering.h"
#include "actors/thrown.h"

namespace paceline {

/// How map() runs its tasks.
struct MapOptions {
  TaskOptions task{};            ///< What each of them needs.
  std::size_t in_flight = 1024;  ///< So many are asked for and have no result yet, at most.
};

/// How parallel_for() runs its tasks.
struct ForOptions {
  TaskOptions task{};            ///< What each of them needs.
  std::size_t chunk = 0;         ///< Indices of one task; 0: so many that there are at most 256 tasks.
  std::size_t in_flight = 1024;  ///< So many tasks are asked for and have no result yet, at most.
};

namespace actors {

template <class Range>
concept IsRange = requires(Range& range) {
  *std::begin(range);
  std::end(range);
};

/// Tasks of one map that have no result yet, a bounded number. Owned by the thread that waits for them; what is left
/// when it goes is wanted no more.
class InFlight {
 public:
  explicit InFlight(std::size_t most);
  ~InFlight();
  InFlight(const InFlight&) = delete;
  InFlight& operator=(const InFlight&) = delete;

  bool full() const { return free_.empty(); }
  bool empty() const { return free_.size() == results_.size(); }
  void add(std::size_t index, PendingResultPtr result);

  struct Arrived {
    std::size_t index = 0;
    PendingResultPtr result;
  };
  /// Blocks until one has arrived; not while it is empty. Throws TaskError where one has failed: the first one of those
  /// that have, with which element it is of before the text.
  Arrived take(bool says_which);
  /// Whether take() would not block.
  bool some_arrived();

 private:
  void hear();

  struct Place {
    std::size_t index = 0;
    PendingResultPtr result;
  };
  std::vector<Place> results_;
  std::vector<std::size_t> free_, arrived_;  ///< Places.
  Gathering gathering_;
};

/// The results of what `begin(element)`, a Future each, gives of each element, in their order; at most `most` are under
/// way at a time.
template <class Called, class Range, class Begin>
auto map_in_flight(Range&& range, std::size_t most, Begin begin) {
  using T = typename Called::value_type;
  InFlight under_way(most);
  std::conditional_t<std::is_void_v<T>, std::vector<std::monostate>, std::vector<std::optional<T>>> values;
  const auto take = [&] {
    const auto one = under_way.take(true);
    if constexpr (!std::is_void_v<T>) values[one.index] = Called(one.result).get();
  };
  for (auto&& element : range) {
    while (under_way.full() || under_way.some_arrived()) take();
    const std::size_t index = values.size();
    values.emplace_back();
    under_way.add(index, begin(std::forward<decltype(element)>(element)).pending());
  }
  while (!under_way.empty()) take();
  if constexpr (!std::is_void_v<T>) {
    std::vector<T> results;
    results.reserve(values.size());
    for (auto& value : values) results.push_back(*std::move(value));
    return results;
  }
}

/// Indices from argument 1 to before argument 2, each given to the callable that is argument 0.
template <class F, class Index>
Result<void> run_range(Invocation& invocation) {
  if (invocation.arguments.empty()) return fail(ErrorKind::invalid, "a call without its first part");
  invocation.calls(kCallable<F>);
  auto range = decode_arguments(invocation.arguments, 1, static_cast<std::tuple<Index, Index>*>(nullptr));
  if (!range) return tl::unexpected(std::move(range).error());
  auto callable = decode_callable<F>(invocation.arguments[0]);
  if (!callable) return tl::unexpected(std::move(callable).error());
  const auto [begin, end] = *range;
  for (Index index = begin; index < end; ++index) {
    if (cancelled()) return fail(ErrorKind::cancelled, "the rest of parallel_for() was cancelled");
    try {
      std::invoke(*callable, index);
    } catch (...) {
      return tl::unexpected(prefixed(error_thrown(), "index " + std::to_string(index) + ": "));
    }
  }
  return {};
}

}  // namespace actors

/// `function(element)` of each element, as tasks (see async() for what `function` may be), and the results in the order
/// of the elements. Blocks; at most `options.in_flight` tasks are under way at a time, so that a range may be long. The
/// first error ends it: no more tasks are begun, and it throws TaskError that names the element.
template <class F, class Range>
auto map(F&& function, Range&& range, const MapOptions& options = {}) {
  static_assert(actors::IsRange<Range>, "paceline::map takes a function and a range of its arguments");
  if constexpr (actors::IsRange<Range>) {
    using Task = decltype(async(options.task, function, *std::begin(range)));
    if constexpr (actors::is_future<Task>) {
      return actors::map_in_flight<Task>(std::forward<Range>(range), options.in_flight, [&](auto&& element) {
        return async(options.task, function, std::forward<decltype(element)>(element));
      });
    }
  }
}

/// `function(i)` for each i from `begin` to before `end`, `options.chunk` of them a task (see async() for what
/// `function` may be; what it gives is dropped). Blocks. The first error ends it: no more tasks are begun, and it
/// throws TaskError that names the index.
template <class Index, class F>
void parallel_for(Index begin, std::type_identity_t<Index> end, F&& function, const ForOptions& options = {}) {
  using Callable = std::decay_t<F>;
  static_assert(std::is_integral_v<Index>, "paceline::parallel_for counts from one integer to another");
  static_assert(actors::Travelling<Callable>,
                "paceline::parallel_for takes a function, or a lambda that captures plain values by copy");
  static_assert(!actors::Travelling<Callable> || std::is_invocable_v<Callable&, Index>,
                "the function of paceline::parallel_for takes an index");
  if constexpr (std::is_integral_v<Index> && actors::Travelling<Callable> && std::is_invocable_v<Callable&, Index>) {
    if (begin >= end) return;
    const auto count = static_cast<std::size_t>(end) - static_cast<std::size_t>(begin);
    const std::size_t chunk = options.chunk > 0 ? options.chunk : (count + 255) / 256;
    const auto name = actors::or_throw(actors::name_of(&actors::run_range<Callable, Index>));
    const auto callable = actors::or_throw(actors::encode_callable<Callable>(function));
    actors::InFlight under_way(options.in_flight);
    for (std::size_t first = 0; first < count; first += std::min(chunk, count - first)) {
      while (under_way.full() || under_way.some_arrived()) (void)under_way.take(false);
      actors::Call call;
      call.function = name;
      const auto at = [&](std::size_t offset) { return static_cast<Index>(static_cast<std::size_t>(begin) + offset); };
      std::vector<actors::ArgumentSource> sources{callable, actors::to_bytes<Index>(at(first)),
                                                  actors::to_bytes<Index>(at(first + std::min(chunk, count - first)))};
      under_way.add(first, actors::submit_task(std::move(call), std::move(sources), options.task));
    }
    while (!under_way.empty()) (void)under_way.take(false);
  }
}

}  // namespace paceline
