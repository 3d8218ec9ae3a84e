#pragma once

#include <version>

/// Where the compiler knows coroutines (g++ from 10 on, clang from 15 on).
#ifdef __cpp_impl_coroutine
#define PACELINE_HAS_COROUTINES 1

#include <coroutine>
#include <exception>
#include <memory>
#include <thread>
#include <tuple>
#include <utility>
#include <variant>

#include "actors/future.h"
#include "actors/invoke.h"
#include "actors/resumer.h"

namespace paceline {
namespace actors {

struct Nothing {};

/// What a coroutine left: nothing yet (or no more), its value, what it threw.
template <class T>
using Outcome = std::variant<std::monostate, std::conditional_t<std::is_void_v<T>, Nothing, T>, std::exception_ptr>;

struct PromiseBase {
  std::coroutine_handle<> awaiting;  ///< Goes on when this one is done;
  std::function<void()> on_done;     ///< or this is called.

  struct Final {
    bool await_ready() const noexcept { return false; }
    template <class Promise>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> done) const noexcept {
      PromiseBase& promise = done.promise();
      if (promise.on_done) promise.on_done();
      return promise.awaiting ? promise.awaiting : std::noop_coroutine();
    }
    void await_resume() const noexcept {}
  };
  /// Begins at once: a call begins when its turn comes.
  std::suspend_never initial_suspend() const noexcept { return {}; }
  Final final_suspend() const noexcept { return {}; }
};

template <class T>
struct PromiseOf : PromiseBase {
  Outcome<T> outcome;
  template <class Value>
  requires(std::is_convertible_v<Value&&, T>) void return_value(Value&& value) {
    outcome.template emplace<1>(std::forward<Value>(value));
  }
  void unhandled_exception() { outcome.template emplace<2>(std::current_exception()); }
};
template <>
struct PromiseOf<void> : PromiseBase {
  Outcome<void> outcome;
  void return_void() { outcome.emplace<1>(); }
  void unhandled_exception() { outcome.emplace<2>(std::current_exception()); }
};

/// Of what has suspended, on the way to its resumer and back: a coroutine that is gone by then is left alone.
class Suspended {
 public:
  Suspended() = default;
  Suspended(const Suspended&) = delete;
  Suspended& operator=(const Suspended&) = delete;
  ~Suspended() {
    if (handle_) *handle_ = nullptr;
  }
  std::function<void()> go_on(std::coroutine_handle<> handle) {
    handle_ = std::make_shared<std::coroutine_handle<>>(handle);
    return [handle = handle_] {
      if (*handle) handle->resume();
    };
  }

 private:
  std::shared_ptr<std::coroutine_handle<>> handle_;
};

template <class T>
class FutureAwaiter {
 public:
  explicit FutureAwaiter(Future<T> future) : future_(std::move(future)) {}
  bool await_ready() const { return future_.ready() || resumer() == nullptr; }
  void await_suspend(std::coroutine_handle<> handle) {
    future_.pending()->when_ready(resumer()->later(suspended_.go_on(handle)));
  }
  T await_resume() const { return future_.get(); }

 private:
  Future<T> future_;
  Suspended suspended_;
};

class SleepAwaiter {
 public:
  explicit SleepAwaiter(Duration duration) : duration_(duration) {}
  bool await_ready() const {
    if (resumer() == nullptr) std::this_thread::sleep_for(duration_);
    return resumer() == nullptr;
  }
  void await_suspend(std::coroutine_handle<> handle) { resumer()->after(duration_, suspended_.go_on(handle)); }
  void await_resume() const noexcept {}

 private:
  Duration duration_;
  Suspended suspended_;
};

}  // namespace actors

/// What a coroutine gives: a method of an actor that returns one may `co_await` futures, others of its kind and
/// sleep_for(), and meanwhile other calls of the actor run, on the same thread. Begins at once. The caller of such a
/// method has a Future<T>. One that is dropped ends where it waits. In a task, and in `main`, where nothing else could
/// run meanwhile, `co_await` blocks as Future::get() does.
template <class T>
class [[nodiscard]] Async {
 public:
  struct promise_type : actors::PromiseOf<T> {
    Async get_return_object() { return Async(std::coroutine_handle<promise_type>::from_promise(*this)); }
  };

  Async(Async&& other) noexcept : coroutine_(std::exchange(other.coroutine_, nullptr)) {}
  Async& operator=(Async&& other) noexcept {
    std::swap(coroutine_, other.coroutine_);
    return *this;
  }
  // Ends the coroutine where it waits.
  ~Async() {
    if (coroutine_) coroutine_.destroy();
  }

  /// Whether it has returned or thrown.
  bool done() const { return coroutine_.done(); }
  /// What it returned, or throws what it threw, once; TaskError if it is not done: `co_await` waits for it.
  T get() {
    auto outcome = std::exchange(coroutine_.promise().outcome, {});
    if (outcome.index() == 2) std::rethrow_exception(std::get<2>(outcome));
    if (outcome.index() == 0)
      throw TaskError({ErrorKind::invalid, done() ? "the result of a coroutine was asked for twice"
                                                  : "the result of a coroutine that is not done: co_await it"});
    if constexpr (!std::is_void_v<T>) return std::get<1>(std::move(outcome));
  }

  // `co_await` gives what get() does.
  auto operator co_await() {
    struct Awaiter {
      Async& awaited;
      bool await_ready() const { return awaited.done(); }
      void await_suspend(std::coroutine_handle<> awaiting) { awaited.coroutine_.promise().awaiting = awaiting; }
      T await_resume() { return awaited.get(); }
    };
    return Awaiter{*this};
  }

 private:
  template <class>
  friend class actors::AsyncCall;
  explicit Async(std::coroutine_handle<promise_type> coroutine) : coroutine_(coroutine) {}
  std::coroutine_handle<promise_type> coroutine_;
};

// In a coroutine: its value, or throws its TaskError. An actor's other calls run meanwhile.
template <class T>
actors::FutureAwaiter<T> operator co_await(Future<T> future) {
  return actors::FutureAwaiter<T>(std::move(future));
}

/// `co_await paceline::sleep_for(10ms)`: later, and an actor's other calls run meanwhile.
inline actors::SleepAwaiter sleep_for(Duration duration) { return actors::SleepAwaiter(duration); }

namespace actors {

/// A call to a coroutine method: its arguments stay where the method sees them for as long as it runs.
template <class T>
class AsyncCall final : public UnfinishedCall {
 public:
  template <class Values, class Begin>
  AsyncCall(const std::shared_ptr<Values>& values, Begin begin) : values_(values), async_(begin(*values)) {}

  bool done() const override { return async_.done(); }
  void on_done(std::function<void()> then) override { async_.coroutine_.promise().on_done = std::move(then); }
  Bytes result() override {
    if constexpr (std::is_void_v<T>) {
      async_.get();
      return {};
    } else {
      return to_bytes<T>(async_.get());
    }
  }

 private:
  const std::shared_ptr<const void> values_;
  Async<T> async_;
};

}  // namespace actors
}  // namespace paceline

#endif
