#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <utility>

#include "actors/coroutine.h"
#include "actors/handle.h"

#ifdef PACELINE_HAS_COROUTINES

namespace paceline {

/// How much a Queue holds, and where.
struct QueueOptions {
  std::size_t capacity = 0;  ///< Values that it holds; 0: any number.
  ActorOptions actor{};      ///< Of the actor that holds them.
};

namespace actors {

/// What a Queue holds. Who waits is served in turn: a value goes straight to the getter whose turn it is, and what a
/// getter takes makes room for the putter whose turn it is.
template <class T>
class QueueActor {
 public:
  using Patience = std::optional<Duration>;
  explicit QueueActor(std::size_t capacity) : capacity_(capacity) {}

  /// False: there was no room in time.
  Async<bool> put(T value, Patience patience) {
    if (closed_) throw closed();
    if (!getters_.empty()) {
      serve(getters_)->value = std::move(value);
      co_return true;
    }
    if (capacity_ == 0 || values_.size() < capacity_) {
      values_.push_back(std::move(value));
      co_return true;
    }
    const auto own = std::make_shared<Waiting>();
    own->value = std::move(value);
    co_await turn(putters_, own, patience);
    if (own->value && closed_) throw closed();
    co_return !own->value;
  }
  /// None: there was none in time, or there will be none.
  Async<std::optional<T>> get(Patience patience) {
    if (!values_.empty()) {
      auto value = std::move(values_.front());
      values_.pop_front();
      if (!putters_.empty()) values_.push_back(*std::exchange(serve(putters_)->value, std::nullopt));
      co_return std::optional<T>(std::move(value));
    }
    if (closed_) co_return std::nullopt;
    const auto own = std::make_shared<Waiting>();
    co_await turn(getters_, own, patience);
    co_return std::move(own->value);
  }
  std::size_t size() const { return values_.size(); }
  /// What is in it may still be taken.
  void close() {
    closed_ = true;
    for (auto* waiting : {&getters_, &putters_})
      while (!waiting->empty()) (void)serve(*waiting);
  }

 private:
  struct Waiting {
    std::optional<T> value{};  ///< A putter's, until it is taken; a getter's, once it is given.
    PendingResultPtr over = std::make_shared<PendingResult>(TaskId{}, ActorId{}, true);
  };
  using Line = std::deque<std::shared_ptr<Waiting>>;

  static TaskError closed() { return TaskError({ErrorKind::invalid, "put() into a queue that is closed"}); }
  static std::shared_ptr<Waiting> serve(Line& line) {
    auto served = std::move(line.front());
    line.pop_front();
    (void)served->over->complete(Bytes{});  // It goes on when this call is over.
    return served;
  }
  static Async<void> turn(Line& line, std::shared_ptr<Waiting> own, Patience patience) {
    if (patience && *patience <= Duration::zero()) co_return;
    line.push_back(own);
    std::optional<Async<void>> alarm;
    if (patience) alarm.emplace(ring(own->over, *patience));
    co_await Future<void>(own->over);
    std::erase(line, own);
  }
  static Async<void> ring(PendingResultPtr over, Duration patience) {
    co_await sleep_for(patience);
    (void)over->complete(Bytes{});
  }

  const std::size_t capacity_;
  bool closed_ = false;
  std::deque<T> values_;
  Line getters_, putters_;
};

}  // namespace actors

/// Values on their way from some processes to others, in order: who gets one is the only one. An actor holds them; a
/// Queue is a handle of it (actors/handle.h), and travels as one. Many may put and get at the same time.
template <class T>
class Queue {
 public:
  Queue() = default;
  explicit Queue(Handle<actors::QueueActor<T>> actor) : actor_(std::move(actor)) {}

  /// Waits for room. Throws TaskError of kind `invalid` once the queue is closed.
  void put(const T& value) const { put_async(value).get(); }
  /// The same for at most so long; false: there was no room.
  bool put(const T& value, Duration timeout) const { return put_async(value, timeout).get(); }
  /// For `co_await`, and for several at a time: false after the timeout.
  Future<bool> put_async(const T& value, std::optional<Duration> timeout = {}) const {
    return actor_.call(&actors::QueueActor<T>::put, value, timeout);
  }

  /// Waits for a value; none: the queue is closed, and empty.
  std::optional<T> get() const { return get_async().get(); }
  /// The same for at most so long, then none.
  std::optional<T> get(Duration timeout) const { return get_async(timeout).get(); }
  /// For `co_await`, and for several at a time. A value that comes to a future that nobody keeps any more is lost.
  Future<std::optional<T>> get_async(std::optional<Duration> timeout = {}) const {
    return actor_.call(&actors::QueueActor<T>::get, timeout);
  }

  /// Values in it now.
  std::size_t size() const { return actor_.call(&actors::QueueActor<T>::size).get(); }
  /// Nothing more may be put in; what is in it may still be taken.
  void close() const { actor_.call(&actors::QueueActor<T>::close).get(); }

  const Handle<actors::QueueActor<T>>& actor() const { return actor_; }

  template <class Archive>
  void serialize(Archive& archive) {
    archive(actor_);
  }

 private:
  Handle<actors::QueueActor<T>> actor_;
};

/// A new queue, or with a name and get_if_exists in `options.actor` the one that is there. It ends as an actor does
/// (create()).
template <class T>
Queue<T> make_queue(const QueueOptions& options = {}) {
  return Queue<T>(create<actors::QueueActor<T>>(options.actor, options.capacity));
}

}  // namespace paceline

#endif
