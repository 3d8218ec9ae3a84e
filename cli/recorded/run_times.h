#pragma once

#include <cstdint>
#include <vector>

#include "cli/recorded/recorded_decisions.h"
#include "cli/recorded/run_trace.h"
#include "runtime/base/result.h"

namespace paceline::recorded {

/// Where a worker's time went, in seconds.
struct WorkerTime {
  std::int32_t rank = 0;
  double compute_s = 0;
  double abandoned_s = 0;   ///< Computing for an update that ended before.
  double waiting_s = 0;     ///< For other workers.
  double averaging_s = 0;   ///< For sums, merges and what the agents say.
  double evaluation_s = 0;  ///< It evaluated, or was held while another did.
  double awaited_s = 0;     ///< What others together waited for this worker, the last one of a round.
  std::int64_t contributions = 0;
  std::int64_t late = 0;    ///< Of an earlier iteration than the round's.
  std::int64_t missed = 0;  ///< Rounds that found nothing of it.

  void add(const WorkerTime& other);
  double sum_s() const { return compute_s + abandoned_s + waiting_s + averaging_s + evaluation_s; }
};

/// Re-enacts a run in virtual time: the production core is told the recorded decisions, and says when each worker went
/// on; the trace says what workers did in between. Where there are no rounds, recorded arrivals say how long neighbours
/// and bounds made a worker wait. By rank. `invalid` if the core goes another way.
Result<std::vector<WorkerTime>> reenact(const RecordedRun& run, const RunTrace& trace);

}  // namespace paceline::recorded
