#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "actors/cancel.h"
#include "actors/generator.h"
#include "actors/next_iterator.h"
#include "actors/stream/incoming_stream.h"

#ifdef PACELINE_HAS_COROUTINES

namespace paceline {
namespace actors {
/// As IncomingStream::next(); who gives the values hears of it in time.
PendingResultPtr next_of(IncomingStream& stream);
/// Throws TaskError of kind `invalid` where it is less than 1.
std::uint32_t checked_ahead(int ahead);
}  // namespace actors

/// What a task or a call gives that returns a Generator<T>: its values as they come, each once and in order, whatever
/// is run again. They are computed at most so far ahead of who reads them as the task's options say (`ahead`), 64 MiB
/// at most. Copies share one stream; dropping the last one cancels what gives it. Any thread; not to be sent.
template <class T>
class Stream {
 public:
  using value_type = T;

  Stream() = default;
  explicit Stream(std::shared_ptr<actors::IncomingStream> incoming) : incoming_(std::move(incoming)) {}

  /// Waits for the next value; none: there are no more. Throws TaskError with what the task threw, behind the values
  /// that came before it.
  std::optional<T> next() const { return next_async().get(); }
  /// The same for at most `timeout`, then throws TaskError of kind `timed_out`: no value is lost.
  std::optional<T> next(Duration timeout) const {
    const auto asked = next_async();
    if (!asked.wait_for(timeout)) {
      checked().put_back(asked.pending());
      throw TaskError(actors::not_there(*asked.pending(), timeout));
    }
    return asked.get();
  }
  /// For `co_await`, and for several at a time. A value that comes to a future that nobody keeps any more is lost.
  Future<std::optional<T>> next_async() const { return Future<std::optional<T>>(actors::next_of(checked())); }

  /// False for a default-constructed stream.
  bool valid() const { return incoming_ != nullptr; }
  const std::shared_ptr<actors::IncomingStream>& incoming() const { return incoming_; }

  using Iterator = actors::NextIterator<const Stream>;
  Iterator begin() const { return Iterator(*this); }  ///< For a loop over the values that are left.
  actors::NothingMore end() const { return {}; }      ///< Behind the last one.

 private:
  actors::IncomingStream& checked() const {
    if (!incoming_) throw TaskError({ErrorKind::invalid, "an empty stream was asked for a value"});
    return *incoming_;
  }
  std::shared_ptr<actors::IncomingStream> incoming_;
};

/// What gives it ends as a task that is cancelled does: its values that have come may still be read.
template <class T>
Cancelled cancel(const Stream<T>& stream, const CancelOptions& options = {}) {
  return actors::cancel(stream.valid() ? stream.incoming()->end() : nullptr, options);
}

}  // namespace paceline

#endif
