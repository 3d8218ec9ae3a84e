#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "runtime/base/contained.h"
#include "runtime/base/ids.h"
#include "runtime/base/readable.h"
#include "runtime/base/result.h"
#include "runtime/wire/messages.capnp.h"

#include <capnp/message.h>
#include <capnp/serialize.h>
#include <kj/exception.h>

namespace paceline::wire {

/// The version is the whole contract: a peer of another one is refused, whatever it says.
inline constexpr std::uint32_t kProtocolVersion = 1;
/// Largest encoded envelope that is read; bulk data travels in frames of its own.
inline constexpr std::size_t kMaxEnvelopeBytes = std::size_t{64} << 20;
/// Pointers deeper than this below the envelope are refused (the schema needs 6).
inline constexpr int kMaxNesting = 16;

/// The same type as transport::Frame; this folder does not know that one.
using Frame = std::vector<std::byte>;

/// A message being written: fill `root()`, then `to_frame()`. Small ones allocate nothing but the frame.
/// Not movable: builders point into it. Owned by one thread.
class Message {
 public:
  Message();
  /// A copy of one that was received, to be read later.
  explicit Message(const Envelope::Reader& envelope);
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;

  /// The envelope, with its version set.
  Envelope::Builder root() { return builder_->getRoot<Envelope>(); }
  /// Size of the frame that `to_frame` returns. One beyond kMaxEnvelopeBytes will be refused by its reader:
  /// ask first where bytes of users go in.
  std::size_t size_bytes();
  /// The encoded envelope: flat, not packed, copied once.
  Frame to_frame();
  /// The same, for a packet (runtime/process/descriptor_message.h).
  std::string to_packet();
  /// An empty envelope again; builders of the old one are invalid.
  void clear();

 private:
  // Enough for everything but calls with large arguments. The builder wants it zeroed, and zeroes what it used.
  std::array<capnp::word, 96> scratch_;
  std::optional<capnp::MallocMessageBuilder> builder_;
};

/// A message that was received and may be anything: truncated, random, built to exhaust us, of another version.
///
/// parse() checks size, alignment, framing and version. Cap'n Proto checks the rest only when a field is read, and then
/// throws: read fields inside visit(), or inside a function that visit() called.
class Received {
 public:
  /// `invalid`, and one line that says why, unless this is an envelope of our version. Copies only if misaligned.
  static Result<Received> parse(Frame frame);
  static Result<Received> parse_packet(std::string_view bytes);

  Envelope::Reader root() const { return root_; }

  /// Calls `handler(root())` (it returns void or Result<void>). If what it reads is damaged, it is left by an exception
  /// at that field, and the result is `invalid`: a handler reads what it needs first, then acts. Whatever else the
  /// handler throws is the result, too (contained()): no message ends the process that gets it.
  template <class Handler>
  Result<void> visit(Handler&& handler) const {
    return contained([&]() -> Result<void> {
      try {
        if constexpr (std::is_void_v<std::invoke_result_t<Handler, Envelope::Reader>>) {
          std::forward<Handler>(handler)(root_);
          return {};
        } else {
          return std::forward<Handler>(handler)(root_);
        }
      } catch (const kj::Exception& damage) {
        return damaged(damage, frame_.size());
      }
    });
  }

 private:
  Received() = default;
  static tl::unexpected<Error> damaged(const kj::Exception& damage, std::size_t bytes);

  Frame frame_;                                            // A vector keeps its address when it is moved.
  std::unique_ptr<capnp::FlatArrayMessageReader> reader_;  // Not movable itself.
  Envelope::Reader root_;
};

/// Text of Cap'n Proto as a view, without a copy, as it came: it may hold any bytes.
inline std::string_view view(capnp::Text::Reader text) { return {text.begin(), text.size()}; }
/// A copy that can be shown, logged and put into JSON (readable()). What people and programs say goes through here.
inline std::string text(capnp::Text::Reader text) { return readable(view(text)); }
/// A copy as it came, for what the system takes: paths, arguments, environments.
inline std::string raw(capnp::Text::Reader text) { return std::string(view(text)); }

/// What a peer is told whose message could not be read.
Frame refusal(const Error& error);

/// What a peer is told that said hello: the name under which it is known, the node that answers, and what marks the ids
/// that it makes (0: it makes none).
Frame welcome(const std::string& name, NodeId node, std::uint32_t process = 0);

/// The training job that a session's or another agent's message is for, with its leg (runtime/base/job_leg.h);
/// nullopt: it is for none.
std::optional<JobId> job_of(const Envelope::Reader& envelope);

}  // namespace paceline::wire
