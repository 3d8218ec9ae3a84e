#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "algorithms/simulate/cluster/faults.h"
#include "algorithms/simulate/cluster/trainee.h"
#include "runtime/base/result.h"

namespace paceline::simulate {

/// A job on a simulated cluster of the very head and agents that run in processes, with what goes wrong meanwhile.
struct ClusterScenario {
  std::string strategy;
  std::int32_t nodes = 1;
  Training training;  ///< Its workers, updates, times, seed.
  std::vector<FaultRate> faults;
  std::function<void(double virtual_s)> on_look{};  ///< Told every 10 ms of virtual time; for progress.
};

struct ClusterOutcome {
  std::string failure;                    ///< Why the job failed, or did not end; empty: it ended well.
  double time_s = 0;                      ///< From its submission to the answer to its close.
  std::int64_t updates = 0;               ///< That the foremost worker has done.
  std::int32_t done = 0;                  ///< Workers that came to its end; the others were lost.
  bool has_one_model = true;              ///< All that did have the same.
  double loss = 0;                        ///< Of the first one's, above the lowest that there is.
  std::uint64_t messages = 0, bytes = 0;  ///< Between nodes.
  std::vector<std::string> findings;      ///< What must never be; none is known.
};

/// Tells `tell` of what goes wrong and what the job says of it, in virtual seconds since the submission. `invalid`: the
/// strategy, or the cluster does not take the job.
Result<ClusterOutcome> run_cluster(const ClusterScenario& scenario,
                                   const std::function<void(double at_s, const std::string& what)>& tell);

}  // namespace paceline::simulate
