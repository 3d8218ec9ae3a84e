#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "runtime/base/event_loop.h"
#include "runtime/base/ids.h"
#include "runtime/channel/ring_channel.h"

namespace paceline::cluster {

/// The channels by which the sessions of this node's workers reach their agent: arrivals and reports, straight from a
/// worker's compute thread into the agent's loop. One a worker, made when its session asks. Owned by the control loop,
/// which is woken by a channel's bell; a worker that says much does not keep it from the others.
class SessionChannels {
 public:
  struct Listener {
    std::function<void(WorkerId, channel::Frame)> message;
    std::function<void(WorkerId, const Error&)> broken;  ///< It is closed: what stands in it is no message.
  };

  SessionChannels(EventLoop& loop, Listener listener) : loop_(loop), listener_(std::move(listener)) {}
  ~SessionChannels();

  /// A worker's session asks for its channel (again: the old one is closed). Hands `send` the descriptors for it.
  Result<void> open(WorkerId worker, const std::function<void(const std::vector<process::BorrowedFd>&)>& send);
  /// The worker has ended: what it had said before is heard first.
  void close(WorkerId worker);

 private:
  void hear(WorkerId worker, std::size_t at_most);

  EventLoop& loop_;
  Listener listener_;
  std::map<WorkerId, std::unique_ptr<channel::RingChannel>> channels_;
  channel::Message message_;  ///< Its memory is used again and again.
};

}  // namespace paceline::cluster
