#pragma once

#include <torch/torch.h>

#include "actors/serialise.h"

// What makes a torch::Tensor an argument, or a result, of tasks and actors, also within standard containers and in a
// type's own `serialize`: its type, shape and numbers, and whether it requires a gradient; not the graph that it comes
// from. It arrives contiguous, on the CPU, in memory of its own. Sparse and quantised tensors do not travel.
namespace paceline::actors {

/// Throws std::invalid_argument for a tensor that has no numbers in a row.
void CEREAL_SAVE_FUNCTION_NAME(ByteWriter& archive, const torch::Tensor& tensor);
/// Throws cereal::Exception where the bytes are no tensor.
void CEREAL_LOAD_FUNCTION_NAME(ByteReader& archive, torch::Tensor& tensor);

}  // namespace paceline::actors
