#pragma once

#include <cstdint>
#include <string>

#include "runtime/base/result.h"

namespace paceline {

class Worker;

namespace train {

/// What a worker process knows when its training function is called.
struct WorkerStart {
  std::string endpoint;      ///< The agent's ZeroMQ address.
  std::uint64_t worker = 0;  ///< Its WorkerId.
  int fd_socket = -1;        ///< Unix socket to the agent; stays the caller's.
  std::uint64_t job = 0;
  std::int32_t rank = 0;
  std::string options;       ///< The job's JSON: worker_settings.h reads what concerns a worker.
};

/// Runs the training function as one worker of a job, to its end. `cancelled`: the job could not go on and knows already
/// (NaN loss, agent gone); any other error is an exception of the user's function, its text unchanged, and the job has
/// been told that this worker failed. Throws nothing.
Result<void> run_worker(void (*train)(Worker&), const WorkerStart& start);

}  // namespace train
}  // namespace paceline
