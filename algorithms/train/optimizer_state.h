#pragma once

#include <torch/torch.h>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace paceline::train {

using NamedTensors = std::vector<std::pair<std::string, torch::Tensor>>;

/// True for SGD, Adam, AdamW, RMSprop and Adagrad, whose state is copied tensor by tensor; any other optimiser goes
/// through its own save and load, which takes forty times as long.
bool has_known_state(const torch::optim::Optimizer& optimizer);

/// The optimiser's state as named tensors: "momentum_buffer.conv1.weight", "step.conv1.weight" (int64). Tensors are the
/// optimiser's own, not copies. An optimiser of another type gives one u8 tensor, "saved".
NamedTensors read_optimizer_state(torch::optim::Optimizer& optimizer, const NamedTensors& parameters);

/// Replaces the state by copies of `state`; parameters that it does not name have none afterwards. Throws
/// std::invalid_argument if a tensor does not fit its parameter.
void write_optimizer_state(torch::optim::Optimizer& optimizer, const NamedTensors& parameters,
                           const std::map<std::string, torch::Tensor>& state);

/// Forgets momentum and the like: every buffer starts anew.
void clear_optimizer_state(torch::optim::Optimizer& optimizer);

/// Learning rates of the parameter groups.
std::vector<double> learning_rates(const torch::optim::Optimizer& optimizer);
void set_learning_rates(torch::optim::Optimizer& optimizer, const std::vector<double>& rates);

}  // namespace paceline::train
