#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/cluster/turn_poller.h"
#include "runtime/base/ids.h"
#include "runtime/observe/log.h"
#include "runtime/transport/backlog.h"
#include "runtime/wire/codec.h"

namespace paceline::cluster {

/// The connections of a node's processes (workers, sessions, drivers) to its agent. What one has no room for waits for
/// it; one that takes nothing for long loses its connection, or, a worker, its life. Owned by the agent's control loop.
class LocalPeers {
 public:
  struct Listener {
    std::function<void()> turn;  ///< One begins in which something may have come.
    std::function<void(const transport::Peer&, const wire::Received&, std::vector<transport::Frame>&)> message;
    std::function<void(const transport::Peer&)> gone;
    std::function<void(WorkerId, const std::string& why)> end_worker;
  };

  LocalPeers(std::unique_ptr<transport::Transport> transport, const Clock& clock, std::size_t messages_a_turn,
             observe::Log& log, Listener listener);

  Result<void> watch(EventLoop& loop) { return poller_.watch(loop); }
  void poll() { poller_.poll(); }
  void tick(Instant now);
  std::optional<Instant> next_deadline() const;

  /// False: it is not there.
  bool send(const transport::Peer& peer, std::vector<transport::Frame> frames);

 private:
  void on_event(transport::Event event);
  void on_gone(const transport::Peer& peer);
  void give_up(const transport::Peer& peer, const Error& error);

  std::unique_ptr<transport::Transport> transport_;
  transport::Backlog backlog_;
  TurnPoller poller_;
  const Clock& clock_;
  observe::Log& log_;
  const Listener listener_;
};

}  // namespace paceline::cluster
