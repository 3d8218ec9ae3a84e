#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/instant.h"
#include "runtime/link/link_core.h"
#include "runtime/transport/transport.h"

namespace paceline::link {

/// A transport whose connections are links: what was sent arrives once, over as many connections of the transport below
/// as it takes, or `disconnected` says why not. Messages of any size travel; those from one peer keep the order of
/// their class.
///
/// - `disconnected` comes once for a link, with its cause, behind everything that had arrived: the peer was silent for
///   the lease while it was needed, its process is gone, was started anew, or has called disconnect(). Then connect()
///   again; who listens gets `connected` again.
/// - The side that connected reconnects. A process whose address refuses connections is gone: that is not waited for.
/// - poll() reads for some milliseconds at most before it says that there is nothing, so that a loop has other turns;
///   next_deadline() then is at once.
/// - send() is `overloaded` only beyond Outbox::Options::waiting_bytes_max.
///
/// Owned by one thread. A link that nobody needs costs nothing.
class LinkTransport final : public transport::Transport {
 public:
  struct Options {
    std::uint64_t incarnation = 0;  ///< Of this process, never used again; 0: a random one.
    Duration heartbeat_every = std::chrono::milliseconds(200);
    Duration lease = std::chrono::seconds(2);
    Duration stall = std::chrono::minutes(1);  ///< So long may a peer be busy whose process runs.
    bool has_pulse = false;                    ///< From listen() on: at the address's host, for ipc at 127.0.0.1.
    Outbox::Options sending{};
    Inbox::Options receiving{};
    /// Of a message, by its first frame; none: all are requests, in one order.
    std::function<Class(std::span<const std::byte>)> class_of;
    const Clock* clock = &machine_clock();
  };

  /// `below` is owned from now on, and made for links (ZmqOptions::links).
  LinkTransport(std::unique_ptr<transport::Transport> below, Options options);
  /// Peers hear of the end at once.
  ~LinkTransport() override;
  LinkTransport(const LinkTransport&) = delete;
  LinkTransport& operator=(const LinkTransport&) = delete;

  Result<std::string> listen(const std::string& address) override;
  Result<void> connect(const transport::Peer& peer, const std::string& address) override;
  void disconnect(const transport::Peer& peer) override;
  Result<void> send(const transport::Peer& peer, std::vector<Frame>&& frames) override;
  Result<void> send_pieces(const transport::Peer& peer, Frame&& head, std::vector<transport::Piece>&& pieces) override;
  std::optional<transport::Event> poll(Duration timeout) override;
  int descriptor() const override { return below_->descriptor(); }
  std::optional<Instant> next_deadline() const override;
  void depends_on(const transport::Peer& peer, bool depends) override;
  transport::Reach reach(const std::string& address) override { return below_->reach(address); }

  /// The link to `peer`, for figures; nullptr: there is none.
  const LinkCore* link(const transport::Peer& peer) const;

 private:
  static constexpr Duration kRedial = std::chrono::milliseconds(50);  // After a connection was refused.

  struct Link {
    LinkCore core;
    std::string dialled{};      ///< The address that we connected to; empty: the peer connected.
    bool is_announced = false;  ///< `connected` has been told.
    bool was_sent_to = false;   ///< Perhaps before: whoever sent hears of its end all the same.
    bool is_refusal_told = false;
    Duration refused_pause = kRedial;
    std::optional<Packet> stuck{};  ///< What the transport below had no room for.
    std::optional<Instant> redial_at{};
    std::optional<Instant> probe_at{};
    Duration probe_pause{};
    std::optional<std::uint64_t> asked_pulse{};  ///< The last question.
  };
  using Links = std::map<transport::Peer, Link>;  // Ordered: in which turn they are looked after is observable.

  Instant now() const;
  Link new_link(const transport::Peer& peer, std::string dialled);
  Result<void> pass(const transport::Peer& peer, std::vector<transport::Piece>&& frames);
  void take_in(transport::Event event);
  void on_message(transport::Event event, Instant now);
  void on_lost(const transport::Peer& peer, Link& link, Instant now);
  void on_refused(transport::Event event, Instant now);
  void look_after_all(bool drained);
  void look_after(const transport::Peer& peer, Link& link, Instant now);
  bool settle(const transport::Peer& peer, Link& link, Instant now);
  void ask_pulse(Link& link);
  void hear_pulses(Instant now);
  void pump(const transport::Peer& peer, Link& link, Instant now);
  void say_farewell(const transport::Peer& peer, const Link& link);

  std::unique_ptr<transport::Transport> below_;
  Options options_;
  std::string address_;
  Links links_;
  std::set<transport::Peer> depended_on_;
  std::unique_ptr<Pulse> pulse_;
  std::uint64_t last_question_ = 0;
  std::deque<transport::Event> events_;
  std::uint64_t last_link_ = 0;
  bool is_busy_ = false;  ///< The last poll() stopped reading to give others their turn.
};

}  // namespace paceline::link
