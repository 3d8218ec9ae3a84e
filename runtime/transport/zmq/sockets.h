#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/transport/transport.h"

#include <zmq.hpp>

namespace paceline::transport {

/// More frames in one message are no message of ours.
inline constexpr std::size_t kMaxFrames = 64;
/// Frames up to this size are copied into ZeroMQ's message, larger ones handed over.
inline constexpr std::size_t kCopyBytes = 1024;

/// What the two ends of a connection tell each other, invisible above: a message whose first frame is empty.
///
///   dialler                          listener
///      | -- greeting(name) ------------> |   first message of every connection
///      | <------------- welcome -------- |   the name is free: `connected` on both sides
///      | <------------- refusal(why) --- |   it is not: `refused` on the dialler's side
///      | <------------- farewell ------- |   the listener called disconnect()
enum class Control : std::uint8_t { greeting = 1, welcome = 2, refusal = 3, farewell = 4 };

struct ControlMessage {
  Control kind;
  std::string text;
};

std::vector<Frame> encode(const ControlMessage& message);
/// nullopt if `frames` is a message of the user, or nonsense.
std::optional<ControlMessage> decode_control(const std::vector<Frame>& frames);
inline bool is_control(const std::vector<Frame>& frames) { return !frames.empty() && frames.front().empty(); }

/// A message as it came out of a socket.
struct Incoming {
  std::string route;  ///< Of a ROUTER: the connection's id.
  std::vector<Frame> frames;
  int fd = -1;                  ///< Of control messages: the descriptor of the connection that they came by.
  bool oversized = false;       ///< More than kMaxFrames: `frames` has the first ones only.
  std::vector<Piece> pieces{};  ///< Where they are lent: what comes behind the first frame.
};

/// The next message, or nullopt. Never waits. `lend`: frames behind the first are left where ZeroMQ has them, but those
/// of control messages.
std::optional<Incoming> receive(zmq::socket_t& socket, bool routed, bool lend = false);

enum class Sent { yes, full, gone };
/// Never waits. `route` goes first (ROUTER); large frames are handed over without a copy. Full: `frames` are untouched.
Sent send_frames(zmq::socket_t& socket, const std::string* route, std::vector<Frame>&& frames);
/// The same, with pieces that stay their keepers'. Full: `head` and `pieces` are untouched.
Sent send_pieces(zmq::socket_t& socket, const std::string* route, Frame&& head, std::vector<Piece>&& pieces);

/// What happened to a socket's connections, in order.
class Monitor {
 public:
  struct Happening {
    std::uint16_t event = 0;  ///< ZMQ_EVENT_…
    std::int32_t value = 0;   ///< The connection's descriptor, or a code.
  };
  /// Starts to watch `socket` for `events`.
  Monitor(zmq::context_t& context, zmq::socket_t& socket, std::uint64_t key, int events);
  /// Stops watching: ZeroMQ's thread would wait for ever on a report that nobody can receive. Before the socket's end.
  ~Monitor();
  Monitor(Monitor&& other) noexcept;
  Monitor& operator=(Monitor&&) = delete;

  std::optional<Happening> next();
  int fd() const;

 private:
  void* watched_;
  zmq::socket_t pair_;
};

int descriptor_of(const zmq::socket_t& socket);

}  // namespace paceline::transport
