#pragma once

#include <cstdint>
#include <string>

#include "actors/function_ref.h"

namespace paceline::job {

/// The actor that a job's worker is: one method call is the whole of its work.
class JobWorker {
 public:
  /// Runs `main` (a WorkerMain) with `function` as `rank` of `job`; `options` is the job's JSON. Throws what went
  /// wrong.
  void run(actors::FunctionRef main, actors::FunctionRef function, std::uint64_t job, std::int32_t rank,
           std::string options);
};

}  // namespace paceline::job
