#pragma once

#include <optional>
#include <set>

#include "runtime/base/ids.h"
#include "runtime/base/instant.h"

namespace paceline::cluster {

/// How a job ends on one node. At the last version everybody is held: a worker that missed it gets the model of one
/// that did not, and when all of all nodes have it they go, so that all end with the same. One that does not come
/// within patience is left behind; patience is the longer with who is alive. Sans I/O.
///
///   begin -> (this node's workers are there) tell the leader -> (it: all nodes are settled, the evaluation is over)
///   release
class JobEnd {
 public:
  enum class Step {
    none,
    leave_behind,  ///< Those workers of this node that are not there count as gone.
    tell_settled,  ///< To the leader, once.
    release,       ///< The leader: on all nodes.
  };

  JobEnd(NodeId self, std::set<NodeId> nodes) : self_(self), nodes_(std::move(nodes)) {}

  /// The job's last version is executed. Later calls change nothing.
  void begin(Version v, Instant now);
  /// The evaluation is over: patience begins anew.
  void wait_from(Instant now);
  void on_settled(NodeId node) { settled_.insert(node); }
  /// With this node's workers that are not there, and the most that any node may have with its own.
  struct Patience {
    Duration here, most;
  };
  struct Here {
    bool all_there;   ///< Each of this node's workers has the last version or is gone.
    bool evaluating;  ///< One of them does.
    bool leads;       ///< This node does.
  };
  /// What to do now; ask again until `none`.
  Step next(Here here, Patience patience, Instant now);

  std::optional<Version> version() const { return version_; }
  /// This node is: all are there, or left behind.
  bool has_settled() const { return settled_.contains(self_); }
  /// Begun, and not yet released.
  bool is_settling() const { return version_ && !released_; }
  void on_released() { released_ = true; }

 private:
  NodeId self_;
  std::set<NodeId> nodes_;
  std::set<NodeId> settled_;
  std::optional<Version> version_;
  Instant since_{};
  bool left_behind_ = false;
  bool released_ = false;
};

}  // namespace paceline::cluster
