#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "algorithms/cluster/training/driver_events.h"
#include "algorithms/cluster/training/job_entry.h"
#include "algorithms/strategy.h"
#include "runtime/base/clock.h"
#include "runtime/base/ids.h"
#include "runtime/base/job_leg.h"
#include "runtime/base/result.h"
#include "runtime/process/fd.h"
#include "runtime/transport/transport.h"
#include "runtime/wire/codec.h"

namespace paceline::cluster {

/// What a node's part of a job's leg is told once.
struct JobSettings {
  JobId job;
  NodeId self;
  JobEntry entry;
  algorithms::Strategy strategy;
  const Clock* clock = &machine_clock();
  std::int32_t leg = 0;    ///< 0: the first.
  std::int64_t first = 0;  ///< Update that a later leg begins with.
  std::string place = {};  ///< Where in the data, as its workers say it; empty: none has yet.
  /// What a place's workers have done in the legs before.
  struct Worked {
    std::int64_t samples = 0, compute_ns = 0, wait_ns = 0;
  };
  std::map<Rank, Worked> worked = {};

  const job::Options& options() const { return entry.options; }
  /// As agents and sessions call the job.
  JobId named() const { return in_leg(job, leg); }
  bool replays() const { return !options().replay.empty(); }
  std::int32_t workers() const { return static_cast<std::int32_t>(entry.node_of.size()); }
};

/// How it reaches everybody else; the agent implements it.
struct JobOutbox {
  using Follows = std::function<void(const Result<void>&)>;

  /// With bulk that stays its keepers' until the node has it.
  std::function<void(NodeId, wire::Message&, std::vector<transport::Piece>)> to_node;
  std::function<void(const DriverEvents::Write&)> to_driver;
  /// To what a worker's session has asked for under this number.
  std::function<void(WorkerId, std::uint64_t request, wire::Message&, const std::vector<process::BorrowedFd>&)> answer;
  std::function<void(WorkerId, std::uint64_t request, const Error&)> refuse;
  /// Ends a worker, for good; whoever waits for it hears the reason.
  std::function<void(WorkerId, const std::string&)> end_worker;
  /// Ends a worker's process, in whose place another is started. False, and nothing happens: none would be.
  std::function<bool(WorkerId, const std::string&)> replace_worker;
  /// Asks a worker's I/O thread for a sign of life.
  std::function<void(WorkerId)> ask_for_life;
  /// 'T' when the process is stopped, 'Z' or 0 when it has ended.
  std::function<char(WorkerId)> process_state;
  /// Beside the control loop; `follows` back on it.
  std::function<void(std::function<Result<void>()> work, Follows follows)> beside;
  /// -1: it has ended.
  std::function<std::int64_t(WorkerId)> process_id;
};

}  // namespace paceline::cluster
