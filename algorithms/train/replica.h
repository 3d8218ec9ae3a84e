#pragma once

#include <torch/torch.h>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "algorithms/train/optimizer_state.h"
#include "algorithms/train/tensor_file.h"
#include "runtime/base/result.h"

namespace paceline::train {

/// Everything that a worker's state is (architecture: "replica"). Restart, join, checkpoint and resume all use it; its
/// bytes are a safetensors file with the model's tensors under their own names, so that a checkpoint is one, too:
///   conv1.weight, bn.running_mean, ...              parameters (frozen ones as well) and module buffers
///   paceline.optimizer.momentum_buffer.conv1.weight optimiser state
///   paceline.outer                                  what the strategy's outer step goes on from: start, momentum
///   paceline.user.0                                 user's states, as cereal wrote them
/// and in the metadata update, epoch, strategy, seed, learning rates, position of the schedule.
struct Replica {
  std::int64_t update = 0;              ///< The next one to compute.
  std::vector<std::int64_t> scheduled;  ///< Steps that each share's learning rate schedule has made.
  std::vector<double> learning_rates;
  std::vector<double> scheduled_rates;  ///< What they were if no decay were held back.
  NamedTensors model;
  NamedTensors optimizer;
  torch::Tensor outer;  ///< [2, numbers]; undefined: none.
  std::vector<std::string> user;
  std::map<std::string, std::string>
      notes;  ///< Further metadata, for people: strategy, epoch, seed, batch, sampler position.
};

/// Of the file; tensors are read where they lie. What it refers to is the replica's.
Result<TensorEncoder> encoder_of(const Replica& replica);
/// Its bytes.
Result<std::vector<std::byte>> encode_replica(const Replica& replica);

/// Tensors are views of `bytes`, which must outlive them. `invalid`: not a replica, with the reason.
Result<Replica> decode_replica(std::span<const std::byte> bytes);

}  // namespace paceline::train
