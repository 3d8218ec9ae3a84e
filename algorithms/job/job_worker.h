#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "actors/function_ref.h"
#include "actors/serialise.h"

namespace paceline::job {

/// The actor that a job's worker is: one method call is the whole of its work.
class JobWorker {
 public:
  /// Runs `main` (a WorkerMain) as `rank` of `job`, with the script's `call` (a Thunk; without a build: none) and its
  /// arguments; `options` is the job's JSON. Throws what went wrong.
  void run(actors::FunctionRef main, actors::FunctionRef call, std::vector<Bytes> arguments, std::uint64_t job,
           std::int32_t rank, std::string options);
};

}  // namespace paceline::job
