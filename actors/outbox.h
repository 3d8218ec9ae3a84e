#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <vector>

#include "actors/pending_result.h"
#include "actors/protocol.h"
#include "runtime/base/instant.h"
#include "runtime/transport/transport.h"

namespace paceline::actors {

/// Where threads leave messages for the I/O thread. Any thread may push; one thread takes. Bound: kMessagesMax.
class Outbox {
 public:
  static constexpr std::size_t kMessagesMax = 16384;
  using Frames = std::vector<transport::Frame>;

  Outbox();
  ~Outbox();
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;

  /// Appends. At the bound waits up to `patience` for room, then `overloaded`; `disconnected` after close().
  Result<void> push(Frames message, Duration patience);
  /// Appends whatever the bound: for what is bounded elsewhere. Never blocks; nothing happens after close().
  void push_anyway(Frames message);
  /// The actor is not needed any more. Never blocks, never fails: such ids are sent many at a time.
  void release(ActorId actor);
  /// Nobody reads the stream of this task or call any more. Never blocks, never fails.
  void drop_stream(PendingResultPtr end);

  std::optional<Frames> take();
  std::optional<Release> take_release();
  std::vector<PendingResultPtr> take_dropped();
  /// Wakes and refuses all pushers from now on.
  void close();
  /// Wakes the I/O thread.
  void notify();
  /// Readable while there may be something to take; take_notice() clears it.
  int descriptor() const { return event_; }
  void take_notice();

 private:
  template <class List>
  void append(List& list, typename List::value_type value);

  int event_ = -1;
  std::mutex mutex_;
  std::condition_variable room_;
  std::deque<Frames> messages_;
  Release release_;
  std::vector<PendingResultPtr> dropped_;
  bool closed_ = false;
};

}  // namespace paceline::actors
