#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "algorithms/cluster/memory_watch.h"
#include "algorithms/cluster/workers.h"
#include "runtime/base/background.h"
#include "runtime/base/event_loop.h"

namespace paceline::cluster {

/// Looks at what memory the workers of a node take when MemoryWatch says so, beside the loop: it means reading a file
/// for each of them. Owned by the agent's control loop.
class MemoryLookout {
 public:
  struct Around {
    Workers& workers;
    std::function<std::uint64_t(WorkerId)> asked;  ///< Bytes that its task has asked for.
    std::function<void(const MemoryWatch::Victim&)> end;
  };

  /// `limit`: bytes that the workers together may take; 0: what there is.
  MemoryLookout(NodeId node, std::uint64_t limit, Around around);

  /// Nobody looks before.
  Result<void> start(EventLoop& loop);
  void tick(Instant now);
  std::optional<Instant> next_deadline() const;
  void on_worker_gone(WorkerId worker) { watch_.on_gone(worker); }
  const MemoryWatch& watch() const { return watch_; }

 private:
  void look_at_workers();
  void on_look(const Result<void>& done, MemoryWatch::Look& look);

  const Around around_;
  MemoryWatch watch_;
  bool looking_ = false;
  std::unique_ptr<Background> thread_;  // One of its own: no look waits behind others' work.
};

}  // namespace paceline::cluster
