#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "runtime/channel/channel.h"
#include "runtime/transport/transport.h"

namespace paceline::channel {

/// A channel over a connection of a transport: for processes that share no memory. Whoever makes it has connected the
/// transport, or listens for the peer; messages of other peers are not this channel's and are dropped.
class ZmqChannel final : public Channel {
 public:
  ZmqChannel(std::unique_ptr<transport::Transport> transport, transport::Peer peer)
      : transport_(std::move(transport)), peer_(std::move(peer)) {}

  Result<void> send(std::span<const Frame> frames, Duration patience) override;
  Result<bool> receive(Message& message, Duration timeout) override;
  int descriptor() const override { return transport_->descriptor(); }

 private:
  std::optional<Message> look(Duration timeout);

  std::unique_ptr<transport::Transport> transport_;
  transport::Peer peer_;
  Message sending_;                 ///< Its memory is used again.
  std::deque<Message> received_;    ///< Taken from the transport while send() waited.
  std::optional<std::string> end_;  ///< How the connection ended.
};

}  // namespace paceline::channel
