#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>

#include "runtime/base/instant.h"
#include "runtime/base/result.h"

namespace paceline::transport {

/// Which of several ZeroMQ sockets may have input.
///
/// ZMQ_FD is edge-triggered: it tells of commands that wait for the socket's owner, and *any* call on the socket, a
/// send too, may take them in and make the descriptor silent while messages lie there. Hence a socket is in the ready
/// queue until a receive on it found nothing; only those outside of it are left to epoll.
///
/// Does I/O; owned by the transport's thread.
class ReadySet {
 public:
  using Key = std::uint64_t;

  static Result<ReadySet> create();
  ReadySet(ReadySet&& other) noexcept;
  ReadySet& operator=(ReadySet&&) = delete;
  ~ReadySet();

  /// A new source counts as ready.
  Result<void> add(Key key, int fd);
  void remove(Key key, int fd);
  /// The source may be ready although its descriptor is silent: something was sent on it.
  void touch(Key key);
  /// Takes the next ready source in turn; nullopt: none is left, and those outside are silent until the next collect().
  std::optional<Key> take();
  /// Whether take() would give something.
  bool any() const { return !ready_.empty(); }
  /// Waits up to `timeout` until a descriptor is readable, and queues the sources of all that are.
  void collect(Duration timeout);

  /// Readable when collect() or take() would give something. From then on touch() makes it readable too.
  int descriptor();

 private:
  explicit ReadySet(int epoll, int kick) : epoll_(epoll), kick_(kick) {}
  void queue(Key key);

  int epoll_;
  int kick_;  // An eventfd in the epoll set, for what is ready without a descriptor saying so.
  bool kicked_ = false;
  bool described_ = false;
  bool precise_ = true;       // epoll_pwait2 is there.
  bool empty_handed_ = true;  // The last take() gave nothing: the owner may be asleep on descriptor().
  std::deque<Key> ready_;
  std::unordered_map<Key, bool> queued_;
};

}  // namespace paceline::transport
