#include "runtime/transport/zmq/sockets.h"

#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

namespace paceline::transport {
namespace {

constexpr std::string_view kGreetingMagic = "paceline/1 ";
constexpr std::size_t kMaxControlText = 1024;

/// A frame that ZeroMQ's thread frees when it is on its way.
struct HandedOver {
  explicit HandedOver(Frame f) : frame(std::move(f)) {}
  Frame frame;
  std::atomic<bool> handed{false};  // Orders our writes before their free, for tools that cannot see into ZeroMQ.
};

void free_handed_over(void*, void* hint) {
  auto* owned = static_cast<HandedOver*>(hint);
  if (owned->handed.load(std::memory_order_acquire)) delete owned;  // Always: it was set before the send.
}

int send_now(zmq_msg_t& message, void* socket, int flags) {
  int rc = -1;
  do {
    rc = zmq_msg_send(&message, socket, flags | ZMQ_DONTWAIT);
  } while (rc < 0 && errno == EINTR);
  return rc;
}

/// -1 and errno as zmq_msg_send; the frame is as it was then.
int send_part(void* socket, Frame& frame, int flags) {
  zmq_msg_t message;
  HandedOver* handed = nullptr;
  if (frame.size() <= kCopyBytes) {
    if (zmq_msg_init_size(&message, frame.size()) != 0) return -1;
    if (!frame.empty()) std::memcpy(zmq_msg_data(&message), frame.data(), frame.size());
  } else {
    auto owned = std::make_unique<HandedOver>(std::move(frame));
    if (zmq_msg_init_data(&message, owned->frame.data(), owned->frame.size(), free_handed_over, owned.get()) != 0) {
      frame = std::move(owned->frame);
      return -1;
    }
    handed = owned.release();
    handed->handed.store(true, std::memory_order_release);
  }
  const int rc = send_now(message, socket, flags);
  if (rc < 0) {
    const int reason = errno;
    if (handed != nullptr) frame = std::move(handed->frame);
    zmq_msg_close(&message);
    errno = reason;
  }
  return rc;
}

struct Lent {
  Lent() { zmq_msg_init(&message); }
  ~Lent() { zmq_msg_close(&message); }
  Lent(const Lent&) = delete;
  Lent& operator=(const Lent&) = delete;
  zmq_msg_t message;
};

/// What ZeroMQ has, without a copy: it is freed with the piece.
Piece lent(zmq_msg_t& part) {
  auto keeper = std::make_shared<Lent>();
  zmq_msg_move(&keeper->message, &part);
  const auto* bytes = static_cast<const std::byte*>(zmq_msg_data(&keeper->message));
  const auto count = zmq_msg_size(&keeper->message);
  return {std::move(keeper), {bytes, count}};
}

void free_piece(void*, void* hint) { delete static_cast<std::shared_ptr<const void>*>(hint); }

/// -1 and errno as zmq_msg_send.
int send_piece(void* socket, const Piece& piece, int flags) {
  zmq_msg_t message;
  const auto bytes = piece.bytes;
  if (bytes.size() <= kCopyBytes) {
    if (zmq_msg_init_size(&message, bytes.size()) != 0) return -1;
    if (!bytes.empty()) std::memcpy(zmq_msg_data(&message), bytes.data(), bytes.size());
  } else {
    auto keeper = std::make_unique<std::shared_ptr<const void>>(piece.keeper);
    // ZeroMQ only reads what it sends.
    if (zmq_msg_init_data(&message, const_cast<std::byte*>(bytes.data()), bytes.size(), free_piece, keeper.get()) != 0)
      return -1;
    (void)keeper.release();
  }
  const int rc = send_now(message, socket, flags);
  if (rc < 0) {
    const int reason = errno;
    zmq_msg_close(&message);
    errno = reason;
  }
  return rc;
}

/// The route goes before all frames of a ROUTER's message; -1 and errno as zmq_send.
int send_route(void* socket, const std::string& route) {
  int rc = -1;
  do {
    rc = zmq_send(socket, route.data(), route.size(), ZMQ_SNDMORE | ZMQ_DONTWAIT);
  } while (rc < 0 && errno == EINTR);
  return rc;
}

Sent failed_send() { return errno == EAGAIN ? Sent::full : Sent::gone; }

}  // namespace

std::vector<Frame> encode(const ControlMessage& message) {
  Frame body(1, static_cast<std::byte>(message.kind));
  const auto append = [&](std::string_view text) {
    const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
    body.insert(body.end(), bytes, bytes + text.size());
  };
  if (message.kind == Control::greeting) append(kGreetingMagic);
  append(message.text);
  std::vector<Frame> frames(1);
  frames.push_back(std::move(body));
  return frames;
}

std::optional<ControlMessage> decode_control(const std::vector<Frame>& frames) {
  if (frames.size() != 2 || !frames[0].empty() || frames[1].empty() || frames[1].size() > kMaxControlText)
    return std::nullopt;
  const Frame& body = frames[1];
  const auto kind = static_cast<std::uint8_t>(body[0]);
  if (kind < static_cast<std::uint8_t>(Control::greeting) || kind > static_cast<std::uint8_t>(Control::farewell))
    return std::nullopt;
  ControlMessage message{static_cast<Control>(kind),
                         std::string(reinterpret_cast<const char*>(body.data()) + 1, body.size() - 1)};
  if (message.kind == Control::greeting) {
    if (!message.text.starts_with(kGreetingMagic)) return std::nullopt;
    message.text.erase(0, kGreetingMagic.size());
  }
  return message;
}

std::optional<Incoming> receive(zmq::socket_t& socket, bool routed, bool lend) {
  Incoming incoming;
  zmq_msg_t part;
  zmq_msg_init(&part);
  bool more = true;
  for (std::size_t index = 0; more; ++index) {
    int size = -1;
    do {
      size = zmq_msg_recv(&part, socket.handle(), ZMQ_DONTWAIT);
    } while (size < 0 && errno == EINTR);
    if (size < 0) {
      zmq_msg_close(&part);
      return std::nullopt;
    }
    more = zmq_msg_more(&part) != 0;
    const auto* bytes = static_cast<const std::byte*>(zmq_msg_data(&part));
    const auto count = zmq_msg_size(&part);
    if (routed && index == 0) {
      incoming.route.assign(reinterpret_cast<const char*>(bytes), count);
    } else if (incoming.frames.size() + incoming.pieces.size() == kMaxFrames) {
      incoming.oversized = true;
    } else if (lend && !incoming.frames.empty() && !incoming.frames.front().empty()) {
      incoming.pieces.push_back(lent(part));
    } else {
      // A look-up by text in ZeroMQ: only for control messages, which begin with nothing.
      if (incoming.frames.empty() && count == 0) incoming.fd = zmq_msg_get(&part, ZMQ_SRCFD);
      incoming.frames.emplace_back(bytes, bytes + count);
    }
  }
  zmq_msg_close(&part);
  return incoming;
}

Sent send_frames(zmq::socket_t& socket, const std::string* route, std::vector<Frame>&& frames) {
  void* handle = socket.handle();
  if (route != nullptr && send_route(handle, *route) < 0) return failed_send();
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const int flags = i + 1 < frames.size() ? ZMQ_SNDMORE : 0;
    // Whether there is room is decided at the first part; a connection lost after it is reported by its own event.
    if (send_part(handle, frames[i], flags) < 0) return failed_send();
  }
  return Sent::yes;
}

Sent send_pieces(zmq::socket_t& socket, const std::string* route, Frame&& head, std::vector<Piece>&& pieces) {
  void* handle = socket.handle();
  if (route != nullptr && send_route(handle, *route) < 0) return failed_send();
  if (send_part(handle, head, pieces.empty() ? 0 : ZMQ_SNDMORE) < 0) return failed_send();
  for (std::size_t i = 0; i < pieces.size(); ++i)
    if (send_piece(handle, pieces[i], i + 1 < pieces.size() ? ZMQ_SNDMORE : 0) < 0) return failed_send();
  return Sent::yes;
}

int descriptor_of(const zmq::socket_t& socket) { return socket.get(zmq::sockopt::fd); }

Monitor::Monitor(zmq::context_t& context, zmq::socket_t& socket, std::uint64_t key, int events)
    : watched_(socket.handle()), pair_(context, zmq::socket_type::pair) {
  const std::string address = "inproc://monitor-" + std::to_string(key);
  if (zmq_socket_monitor(watched_, address.c_str(), events) != 0) throw zmq::error_t();
  pair_.set(zmq::sockopt::rcvhwm, 0);  // ZeroMQ's own thread waits where it cannot report: it must never.
  pair_.set(zmq::sockopt::linger, 0);
  pair_.connect(address);
}

Monitor::Monitor(Monitor&& other) noexcept
    : watched_(std::exchange(other.watched_, nullptr)), pair_(std::move(other.pair_)) {}

Monitor::~Monitor() {
  if (watched_ != nullptr) zmq_socket_monitor(watched_, nullptr, 0);
}

std::optional<Monitor::Happening> Monitor::next() {
  auto message = receive(pair_, false);
  if (!message || message->frames.empty() || message->frames[0].size() < 6) return std::nullopt;
  Happening happening;
  std::memcpy(&happening.event, message->frames[0].data(), sizeof happening.event);
  std::memcpy(&happening.value, message->frames[0].data() + 2, sizeof happening.value);
  return happening;
}

int Monitor::fd() const { return descriptor_of(pair_); }

}  // namespace paceline::transport
