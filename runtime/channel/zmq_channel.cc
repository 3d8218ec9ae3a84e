#include "runtime/channel/zmq_channel.h"

#include <algorithm>
#include <string>
#include <utility>

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
  std::optional<Instant> begin;  // The clock is read only by who waits.
  sending_.assign(frames.begin(), frames.end());
  while (!end_) {
    auto sent = transport_->send(peer_, std::move(sending_));  // NOLINT(bugprone-use-after-move): as it was.
    if (sent || sent.error().kind != ErrorKind::overloaded) return sent;
    if (!begin) begin = steady_now();
    if (left_of(patience, *begin) == Duration::zero()) return sent;
    if (auto message = look(kLook)) received_.push_back(*std::move(message));
  }
  return fail(ErrorKind::disconnected, *end_);
}

Result<bool> ZmqChannel::receive(Message& message, Duration timeout) {
  if (!received_.empty()) {
    message = std::move(received_.front());
    received_.pop_front();
    return true;
  }
  std::optional<Instant> begin;
  for (Duration left{}; !end_; left = left_of(timeout, *begin)) {
    if (auto next = look(left)) {
      message = *std::move(next);
      return true;
    }
    if (begin && left == Duration::zero()) return false;
    if (!begin) begin = steady_now();
  }
  return fail(ErrorKind::disconnected, *end_);
}

/// The peer's next message, if one comes; news before it are taken notice of.
std::optional<Message> ZmqChannel::look(Duration timeout) {
  while (auto event = transport_->poll(std::exchange(timeout, Duration::zero()))) {
    if (event->peer != peer_) continue;
    switch (event->kind) {
      case transport::Event::Kind::message: return std::move(event->frames);
      case transport::Event::Kind::connected:
      case transport::Event::Kind::contested: break;
      case transport::Event::Kind::disconnected: end_ = "the connection to " + peer_ + " has ended"; break;
      case transport::Event::Kind::refused: end_ = "the connection to " + peer_ + " was refused"; break;
    }
  }
  return std::nullopt;
}

}  // namespace paceline::channel
