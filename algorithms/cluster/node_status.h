#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "actors/router/actor_router.h"
#include "algorithms/cluster/head_contact.h"
#include "algorithms/cluster/memory_watch.h"
#include "algorithms/cluster/node_workers.h"
#include "algorithms/cluster/training/node_jobs.h"
#include "runtime/base/event_loop.h"

namespace paceline::cluster {

/// What an agent says of its node when it is asked (head.h, `status`): for people. Owned by the agent's control loop.
class NodeStatus {
 public:
  struct Of {
    NodeId node;
    std::function<std::int32_t()> nodes;  ///< How many the cluster has.
    const Clock& clock;
    EventLoop& loop;
    const actors::ActorRouter& router;
    const NodeWorkers& workers;
    const MemoryWatch& memory;
    const NodeJobs& jobs;
    std::function<void(std::function<Result<void>()> work, std::function<void(Result<void>)> follows)> beside;
  };

  NodeStatus(Of of, HeadContact& head) : of_(std::move(of)), head_(head) {}

  void answer(std::uint64_t query, const nlohmann::json& asked);

 private:
  nlohmann::json actors_view(const std::string& which, Instant now) const;
  nlohmann::json workers_view(const std::string& which, bool running, Instant now) const;
  nlohmann::json tasks_view(Instant now) const;
  nlohmann::json holds_view(Instant now) const;
  void answer_with_spans(std::uint64_t query, nlohmann::json status);

  const Of of_;
  HeadContact& head_;
};

}  // namespace paceline::cluster
