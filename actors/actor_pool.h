#pragma once

#include <cstddef>
#include <iterator>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "actors/handle.h"
#include "actors/map.h"

namespace paceline {

/// How an ActorPool gives its calls out.
struct ActorPoolOptions {
  std::size_t in_flight = 1;  ///< Calls that one actor has at a time; 2 and more hide the way there of short ones.
};

namespace actors {

/// Which of several actors is called next. One thread at a time.
class PoolTurns {
 public:
  /// Throws TaskError (`invalid`) where there is nobody, or nobody may have a call.
  PoolTurns(std::size_t actors, std::size_t in_flight);
  /// Blocks until somebody has room: whoever has fewest, of several whose turn was longest ago. One that has just died
  /// is called again after a second, or when there are no others: it may be started again, and if not would be the one
  /// that is always free.
  std::size_t next();
  void add(std::size_t actor, PendingResultPtr call);
  std::size_t room() const { return members_.size() * in_flight_; }  ///< Of all.

 private:
  struct Member {
    std::vector<PendingResultPtr> calls{};  ///< Under way, but for those that have ended since they were looked at.
    std::optional<Instant> died{};
    std::uint64_t turn = 0;
  };
  void look(Instant now);
  std::optional<std::size_t> free(Instant now) const;

  std::vector<Member> members_;
  std::size_t in_flight_;
  std::uint64_t turns_ = 0;
};

}  // namespace actors

/// Several actors of one class that do the same: each call goes to one that is free, so that slow ones get fewer. Used
/// by one thread at a time.
template <class T>
class ActorPool {
 public:
  /// Throws TaskError of kind `invalid` where there are none.
  explicit ActorPool(std::vector<Handle<T>> actors, const ActorPoolOptions& options = {})
      : actors_(std::move(actors)), turns_(actors_.size(), options.in_flight) {}

  /// As Handle::call(), of an actor that is free. Blocks until one is.
  template <class Method, class... Args>
  requires(std::is_member_function_pointer_v<Method>) auto call(Method method, Args&&... arguments) {
    const std::size_t actor = turns_.next();
    auto future = actors_[actor].call(method, std::forward<Args>(arguments)...);
    turns_.add(actor, future.pending());
    return future;
  }

  /// `method(element)` of each element, and the results in the order of the elements. Blocks. The first error ends it:
  /// no more calls are made, and it throws TaskError that names the element.
  template <class Method, class Range>
  auto map(Method method, Range&& range) {
    static_assert(actors::IsRange<Range>, "ActorPool::map takes a method and a range of its arguments");
    using Called = decltype(call(method, *std::begin(range)));
    return actors::map_in_flight<Called>(std::forward<Range>(range), turns_.room(), [&](auto&& element) {
      return call(method, std::forward<decltype(element)>(element));
    });
  }

  std::size_t size() const { return actors_.size(); }  ///< Actors.

 private:
  std::vector<Handle<T>> actors_;
  actors::PoolTurns turns_;
};

}  // namespace paceline
