#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/instant.h"
#include "runtime/base/result.h"
#include "runtime/link/inbox.h"
#include "runtime/link/lanes.h"
#include "runtime/link/link_wire.h"
#include "runtime/link/outbox.h"

namespace paceline::link {

/// One end of a link: a conversation between two incarnations of processes that outlives the connections below it.
///
///   no peer --greeting--> open --connection lost--> open, cut off --greeting of the same end--> open (goes on)
///                           |                          |
///                           +-- lease over, another incarnation, farewell, nonsense --> over (for ever)
///
/// What was sent arrives once, in order of its class, or the link is over and says why. On each connection both ends
/// greet with what they have; the rest goes again, from the buffers that it was sent from.
///
/// A link is *needed* while its owner depends on the peer, something is unacknowledged or half here, or it is cut off.
/// Only then does it send heartbeats, and only then does silence count: `lease` of it ends the link. Time in which this
/// end itself stood still does not count. A link that nobody needs has no deadline. A peer whose process runs (its
/// pulse is asked for when it is silent) but says nothing is busy, for `stall` at most.
///
/// Sans-I/O: reads no clock, owns no socket; what happens comes in by on_...(), what to send comes out of next(), when
/// to look again out of next_deadline(). Shell: link_transport.h. Bounds: those of Outbox and Inbox.
class LinkCore {
 public:
  struct Options {
    EndId self;           ///< This end's, never used before.
    std::string peer;     ///< Who is at the other end, for texts.
    std::string address;  ///< Where this process listens; empty: nowhere.
    Duration heartbeat_every = std::chrono::milliseconds(200);
    Duration lease = std::chrono::seconds(2);
    Duration stall = std::chrono::minutes(1);
    PulseAddress pulse{};  ///< This process'.
    Duration acknowledge_within = std::chrono::milliseconds(20);
    Outbox::Options sending{};
    Inbox::Options receiving{};
  };

  explicit LinkCore(Options options);

  /// A connection to the peer is up; the one before it is not.
  void on_connected(Instant now);
  void on_lost(Instant now);
  /// `word` is a message's first frame, `pieces` the others.
  void on_received(std::span<const std::byte> word, std::span<const transport::Piece> pieces, Instant now);
  /// Everything that had arrived was handed in: what is owed to the peer need not wait for more.
  void on_drained() { is_drained_ = true; }
  /// Somebody wants to connect under the peer's name: is the connection that there is alive?
  void on_contested(Instant now);
  /// The peer's process runs.
  void on_pulse(Instant now);
  /// Nobody listens at the peer's address any more: its process is gone.
  void on_refused();

  /// As Outbox::add; `disconnected`, with the cause, if the link is over.
  Result<void> send(Class of, std::vector<transport::Piece>&& frames, Instant now);
  void depends_on(bool depends, Instant now);

  /// What goes to the peer next; nullopt: nothing for now.
  std::optional<Packet> next(Instant now);
  /// What tells the peer that this end takes and sends nothing more.
  Frame farewell() const;
  /// The next message, in order of its class.
  std::optional<std::vector<Frame>> take(Instant now);

  void tick(Instant now);
  std::optional<Instant> next_deadline() const;

  /// The peer has greeted once: from now on the link is one.
  bool is_open() const { return peer_end_.link != 0; }
  /// The connection does not do what connections do: close it, and make another. True once for each.
  bool wants_new_connection() { return std::exchange(wants_new_connection_, false); }
  /// It is over because another end greets in the peer's place, to which a new link may be begun with that greeting.
  bool is_replaced() const { return is_replaced_; }
  /// The peer's pulse is to be asked for. True once for each time.
  bool wants_pulse() { return std::exchange(wants_pulse_, false); }
  const PulseAddress& peer_pulse() const { return peer_pulse_; }
  /// Why the link is over; nullopt: it is not.
  const std::optional<Error>& over() const { return over_; }
  /// It is over, and the other process may be there all the same.
  bool is_silent() const { return is_silent_; }
  bool is_connected() const { return is_connected_; }
  /// Where the peer says that it listens; empty: nowhere.
  const std::string& peer_address() const { return peer_address_; }
  /// From the last heartbeat to its answer, as seen here.
  std::optional<Duration> round_trip() const { return round_trip_; }
  const Outbox& outbox() const { return outbox_; }

 private:
  bool is_needed(Instant now) const;
  void on(const Greeting& greeting, std::span<const transport::Piece> pieces, Instant now);
  void on(const State& state, std::span<const transport::Piece> pieces, Instant now);
  void on(const Head& head, std::span<const transport::Piece> pieces, Instant now);
  void on(const Chunk& chunk, std::span<const transport::Piece> pieces, Instant now);
  void on(const Farewell& farewell, std::span<const transport::Piece> pieces, Instant now);
  void on_unit(const Result<Inbox::Came>& came);
  bool owes_state(Instant now) const;
  Packet greeting();
  Packet state(Instant now);
  void renew();
  void end(std::string cause);
  void broke_the_rules(const Error& how);
  void begin(Instant now);
  void settle(Instant now);

  Options options_;
  Outbox outbox_;
  Inbox inbox_;
  EndId peer_end_;
  std::string peer_address_;
  PulseAddress peer_pulse_;
  bool is_connected_ = false;
  bool is_ready_ = false;  ///< The peer has greeted on this connection.
  bool greeting_due_ = false;
  bool answer_due_ = false;
  bool is_drained_ = false;
  bool depends_ = false;
  bool needed_ = false;
  bool was_connected_ = false;
  bool is_replaced_ = false;
  bool came_again_ = false;
  bool wants_pulse_ = false;
  bool wants_new_connection_ = false;
  std::uint64_t echo_ = 0;
  Instant heard_{};    ///< The last sign of life, or since when silence counts.
  Instant word_at_{};  ///< The same without pulses.
  Instant connected_at_{};
  Instant next_heartbeat_{};
  bool heartbeat_due_ = false;
  std::optional<Instant> acknowledge_at_;
  std::optional<Instant> contested_until_;
  std::optional<Duration> round_trip_;
  std::optional<Error> over_;
  bool is_silent_ = false;
};

}  // namespace paceline::link
