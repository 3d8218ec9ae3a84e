#pragma once

#include <functional>
#include <memory>
#include <string>

#include "algorithms/cluster/kept_states.h"
#include "algorithms/cluster/session_channels.h"
#include "algorithms/cluster/worker_spans.h"
#include "algorithms/cluster/workers.h"
#include "runtime/base/clock.h"
#include "runtime/base/event_loop.h"

namespace paceline::cluster {

/// The workers of a node, and what each has of its agent: its session's channel, its actor's durable state, the memory
/// in which it writes down what it runs. Owned by the agent's control loop; whoever destroys it ends them all.
class NodeWorkers {
 public:
  /// The agent's side.
  struct Around {
    const Clock& clock;
    std::string directory;                                               ///< The cluster's.
    std::function<void(WorkerId, const Workers::Listener::End&)> ended;  ///< All that it had said is told before.
    std::function<void(WorkerId, channel::Frame)> session_said;
    std::function<void(WorkerId, std::string_view packet, process::Fd state)> captured;
    /// The actor whose process it is, if that may be started again; else 0.
    std::function<ActorId(WorkerId)> restartable;
  };
  using Make = std::function<std::unique_ptr<Workers>(Workers::Listener)>;

  /// `prints`, `printed`: as in Workers::Listener.
  NodeWorkers(const Make& make, std::function<void(WorkerOutput::Source)> prints, std::function<void(WorkerId)> printed,
              EventLoop& loop, Around around);

  void fork(const actors::ActorRouter::Fork& fork);
  /// What was kept of an actor; its memory goes with it.
  process::Fd forget(ActorId actor) { return states_.forget(actor); }
  Workers& processes() { return *workers_; }
  const Workers& processes() const { return *workers_; }
  const WorkerSpans& spans() const { return spans_; }

 private:
  void on_ended(WorkerId worker, const Workers::Listener::End& end);
  void on_said(WorkerId worker, process::DescriptorMessage message);
  void open_session(WorkerId worker, std::uint64_t request);
  void give_state(WorkerId worker, std::uint64_t request);
  void keep_state(WorkerId worker, std::uint64_t request, process::Fd state);

  const Around around_;
  std::unique_ptr<Workers> workers_;
  SessionChannels sessions_;
  KeptStates states_;
  WorkerSpans spans_;
};

}  // namespace paceline::cluster
