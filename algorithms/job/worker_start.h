#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "actors/invoke.h"
#include "runtime/base/result.h"

namespace paceline::process {
class DescriptorChannel;
}

namespace paceline::job {

/// What a worker process knows when it begins its part of a job.
struct WorkerStart {
  std::string endpoint;                         ///< The agent's ZeroMQ address.
  std::uint64_t worker = 0;                     ///< Its WorkerId.
  process::DescriptorChannel* agent = nullptr;  ///< Lives as long as the process.
  std::uint64_t job = 0;
  std::int32_t rank = 0;
  std::string options;           ///< The job's JSON.
  actors::Thunk call = nullptr;  ///< What the script gave to the launch; null if nothing.
  std::vector<Bytes> arguments;  ///< Of `call`.
};

/// A worker's whole part of a job: opens a session (algorithms/session) and works until it says END. `cancelled`: the
/// job could not go on and knows already; any other error is the user's, its text unchanged, and the job has been told.
/// Throws nothing.
using WorkerMain = Result<void> (*)(const WorkerStart& start);

}  // namespace paceline::job
