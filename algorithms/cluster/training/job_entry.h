#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "algorithms/job/options.h"
#include "algorithms/strategy.h"
#include "runtime/base/ids.h"
#include "runtime/base/instant.h"
#include "runtime/base/result.h"
#include "runtime/wire/codec.h"

namespace paceline::cluster {

/// Who submitted a job.
struct JobDriver {
  NodeId node;                    ///< Whose agent it is connected to, under this name;
  std::string peer;               ///< "driver/1"
  std::uint64_t incarnation = 0;  ///< Of that agent: another's means that the driver has ended. 0: unknown.
  std::uint64_t request = 0;      ///< Which of its requests the job answers; 0: none of that connection.
  std::uint32_t moves = 0;        ///< From one agent to another, so far: who says more of them knows it better.

  bool operator==(const JobDriver&) const = default;
};

/// A job, as the head opens it on agents, and as they tell a head that was started anew.
struct JobEntry {
  nlohmann::json given;                              ///< All that was submitted;
  job::Options options;                              ///< what of it is ours.
  std::vector<NodeId> node_of{};                     ///< Of each rank.
  std::map<NodeId, std::uint64_t> incarnation_of{};  ///< Of the members' agents, when the job was opened,
                                                     ///< and of those that have no place any more and run it still.
  Instant since{};
  JobDriver driver{};
  std::set<NodeId> without{};                ///< Nodes that it has lost, and went on without.
  std::int32_t leg = 0;                      ///< The newest that was asked for (docs/adr/0050-a-job-goes-in-legs.md).
  std::map<NodeId, std::int32_t> back_in{};  ///< The leg with which each came last that was lost, or that is new to it.

  bool has_place(NodeId node) const;
};

JobDriver read_driver(const wire::JobDriver::Reader& driver);
void write_driver(wire::JobDriver::Builder out, const JobDriver& driver);
/// `invalid`: it says nothing that can be a job.
Result<JobEntry> read_job(const wire::OpenJob::Reader& open, Instant now);
void write_job(wire::OpenJob::Builder open, JobId job, const JobEntry& entry, Instant now);

/// The strategy that a job's options ask for: `strategy`, with `accumulate` mini-batches an update where it has no
/// number of its own.
Result<algorithms::Strategy> job_strategy(const job::Options& options, std::int32_t workers);

}  // namespace paceline::cluster
