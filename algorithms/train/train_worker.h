#pragma once

#include <cstdint>
#include <string>

#include "actors/function_ref.h"

namespace paceline::train {

/// The actor that a training worker is: one method call is the whole of its training.
class TrainWorker {
 public:
  /// Runs the script's training function as `rank` of `job`; `options` is the job's JSON. Throws what the function threw.
  void run(actors::FunctionRef function, std::uint64_t job, std::int32_t rank, std::string options);
};

}  // namespace paceline::train
