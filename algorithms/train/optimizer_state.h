#pragma once

#include <torch/torch.h>
#include <cstdint>
#include <map>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace paceline::train {

using NamedTensors = std::vector<std::pair<std::string, torch::Tensor>>;

/// Key of a parameter in Optimizer::state(): the address of its TensorImpl, until torch 2.0 as text.
template <class Map>
typename Map::key_type key_of(const Map&, const torch::Tensor& tensor) {
  if constexpr (std::is_same_v<typename Map::key_type, std::string>) {
    std::ostringstream text;
    text << tensor.unsafeGetTensorImpl();
    return std::move(text).str();
  } else {
    return tensor.unsafeGetTensorImpl();
  }
}

/// True for SGD, Adam, AdamW, RMSprop, Adagrad and LBFGS, whose state is copied tensor by tensor; any other optimiser
/// goes through its own save and load, which takes forty times as long.
bool has_known_state(const torch::optim::Optimizer& optimizer);

/// The optimiser's state as named tensors: "momentum_buffer.conv1.weight", "step.conv1.weight" (int64). Tensors are the
/// optimiser's own, not copies. An optimiser of another type gives one u8 tensor, "saved".
NamedTensors read_optimizer_state(torch::optim::Optimizer& optimizer, const NamedTensors& parameters);

/// Replaces the state by copies of `state`; parameters that it does not name have none afterwards. Throws
/// std::invalid_argument if a tensor does not fit its parameter.
void write_optimizer_state(torch::optim::Optimizer& optimizer, const NamedTensors& parameters,
                           const std::map<std::string, torch::Tensor>& state);

/// Gives every parameter that has no state yet the one that the optimiser would begin with: moments of zero, step 0.
/// Nothing happens where it keeps none (SGD without momentum); with dampening SGD damps its first step, too, then.
/// Throws std::invalid_argument for other optimisers than SGD, Adam, AdamW, RMSprop and Adagrad.
void create_optimizer_state(torch::optim::Optimizer& optimizer);

/// Forgets momentum and the like: every buffer starts anew.
void clear_optimizer_state(torch::optim::Optimizer& optimizer);

/// A few numbers that each step() changes: counters of steps, or some of a momentum buffer. None before the first step,
/// and of optimisers that keep neither: SGD without momentum, others than SGD, Adam, AdamW, RMSprop and Adagrad.
std::vector<double> step_marks(torch::optim::Optimizer& optimizer, const NamedTensors& parameters);

/// Learning rates of the parameter groups.
std::vector<double> learning_rates(const torch::optim::Optimizer& optimizer);
void set_learning_rates(torch::optim::Optimizer& optimizer, const std::vector<double>& rates);

}  // namespace paceline::train
