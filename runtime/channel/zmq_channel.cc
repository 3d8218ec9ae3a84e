#include "runtime/channel/zmq_channel.h"

#include <algorithm>
#include <string>

#include "runtime/base/steady_now.h"

namespace paceline::channel {
namespace {

constexpr Duration kLook = std::chrono::milliseconds(1);  // A full queue tells nobody when it has room.

/// What is left of `timeout` (negative: for ever) that began at `begin`.
Duration left_of(Duration timeout, Instant begin) {
  return timeout < Duration::zero() ? std::chrono::hours(1)
                                    : std::max<Duration>(Duration::zero(), timeout - (steady_now() - begin));
}

}  // namespace

Result<void> ZmqChannel::send(std::span<const Frame> frames, Duration patience) {
  PACELINE_TRY(check_bounds(frames));
  const Instant begin = steady_now();
  Message message(frames.begin(), frames.end());
  while (!end_) {
    auto sent = transport_->send(peer_, std::move(message));  // NOLINT(bugprone-use-after-move): as it was.
    if (sent || sent.error().kind != ErrorKind::overloaded) return sent;
    if (left_of(patience, begin) == Duration::zero()) return sent;
    look(kLook);
  }
  return fail(ErrorKind::disconnected, *end_);
}

Result<bool> ZmqChannel::receive(Message& message, Duration timeout) {
  const Instant begin = steady_now();
  while (received_.empty() && !end_) {
    const Duration left = left_of(timeout, begin);
    if (!look(left) && left == Duration::zero()) return false;
  }
  if (received_.empty()) return fail(ErrorKind::disconnected, *end_);
  message = std::move(received_.front());
  received_.pop_front();
  return true;
}

/// Takes what the transport has next; false: nothing.
bool ZmqChannel::look(Duration timeout) {
  auto event = transport_->poll(timeout);
  if (!event || event->peer != peer_) return event.has_value();
  switch (event->kind) {
    case transport::Event::Kind::message: received_.push_back(std::move(event->frames)); break;
    case transport::Event::Kind::connected:
    case transport::Event::Kind::contested: break;
    case transport::Event::Kind::disconnected: end_ = "the connection to " + peer_ + " has ended"; break;
    case transport::Event::Kind::refused: end_ = "the connection to " + peer_ + " was refused"; break;
  }
  return true;
}

}  // namespace paceline::channel
