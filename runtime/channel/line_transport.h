#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/base/event_loop.h"
#include "runtime/channel/lines.h"
#include "runtime/transport/transport.h"

namespace paceline::channel {

/// A transport whose messages go through shared memory: beside each connection of the transport below, which sets it up
/// and says when the other process is gone, lies a line (lines.h) as soon as both ends have it. Large messages, and all
/// of peers without a line, go below. Order is kept: whoever changes the way first says how many messages went the
/// other one.
///
/// Bounds: those below and of Lines; what came by a line and has to wait for what came below, kHeldBytesMax of a peer,
/// beyond which the connection ends. Owned by one thread.
class LineTransport final : public transport::Transport {
 public:
  /// Who listens where a process may have fewer has no lines.
  static constexpr std::size_t kDescriptorsMin = 4096;
  static constexpr std::size_t kHeldBytesMax = std::size_t{64} << 20;

  /// `self`: what `below` is called. It is returned as it is where PACELINE_CHANNELS says zmq.
  static Result<std::unique_ptr<transport::Transport>> beside(std::unique_ptr<transport::Transport> below,
                                                              const std::string& self);

  /// How many the lines of one that listens take; 0: there are none.
  static std::size_t listener_descriptors();

  Result<std::string> listen(const std::string& address) override;
  Result<void> connect(const transport::Peer& peer, const std::string& address) override;
  void disconnect(const transport::Peer& peer) override;
  Result<void> send(const transport::Peer& peer, std::vector<Frame>&& frames) override;
  std::optional<transport::Event> poll(Duration timeout) override;
  int descriptor() const override { return loop_.descriptor(); }
  std::optional<Instant> next_deadline() const override { return below_->next_deadline(); }
  transport::Reach reach(const std::string& address) override { return below_->reach(address); }

  /// For tests: how many messages went to, and came from, this peer by its line.
  struct Counts {
    std::uint64_t sent = 0;
    std::uint64_t come = 0;
  };
  Counts by_line(const transport::Peer& peer) const;

 private:
  /// How messages go to and from a peer.
  struct Way {
    bool is_ours = false;       ///< We connected: the line goes out.
    bool is_connected = false;  ///< Below.
    bool has_line = false;      ///< Both ends have it.
    bool sends_by_line = false;
    Counts by_line;
    std::uint64_t sent_below = 0;
    std::uint64_t come_below = 0;
    std::uint64_t line_is_behind = 0;  ///< So many from below come before what comes by the line next.
    struct Held {
      Message message;
      std::uint64_t behind = 0;  ///< So many from below.
    };
    std::deque<Held> held;
    std::size_t held_bytes = 0;
  };

  LineTransport(std::unique_ptr<transport::Transport> below, EventLoop loop)
      : below_(std::move(below)), loop_(std::move(loop)) {}
  Result<void> open(const std::string& self);
  bool send_line(const transport::Peer& peer, const Way& way, const Message& message);
  void on_line(const transport::Peer& peer, bool is_ours, Message message);
  void on_line_ended(const transport::Peer& peer);
  void take_in(transport::Event event);
  void on_gone(transport::Event event);
  bool hear_line(const transport::Peer& peer, std::uint64_t until);
  void let_go_on(const transport::Peer& peer, Way& way);
  void give_up(const transport::Peer& peer);

  std::unique_ptr<transport::Transport> below_;
  EventLoop loop_;  ///< Never run: its descriptor stands for both.
  std::unique_ptr<Lines> lines_;
  std::unordered_map<transport::Peer, Way> ways_;
  std::deque<transport::Event> events_;
};

}  // namespace paceline::channel
