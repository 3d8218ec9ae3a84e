#include "algorithms/train/optimizer_state.h"

#include "algorithms/train/lbfgs_state.h"

#include <algorithm>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <type_traits>

namespace paceline::train {
namespace {

using torch::optim::OptimizerParamState;

// Each visits the fields of one optimiser's state as (name, getter, setter).
template <class Visit>
void fields(torch::optim::SGDParamState& state, Visit&& visit) {
  visit("momentum_buffer", state.momentum_buffer(), [&](auto v) { state.momentum_buffer(v); });
}
template <class State, class Visit>
void adam_fields(State& state, Visit&& visit) {
  visit("step", state.step(), [&](auto v) { state.step(v); });
  visit("exp_avg", state.exp_avg(), [&](auto v) { state.exp_avg(v); });
  visit("exp_avg_sq", state.exp_avg_sq(), [&](auto v) { state.exp_avg_sq(v); });
  visit("max_exp_avg_sq", state.max_exp_avg_sq(), [&](auto v) { state.max_exp_avg_sq(v); });
}
template <class Visit>
void fields(torch::optim::AdamParamState& state, Visit&& visit) {
  adam_fields(state, visit);
}
template <class Visit>
void fields(torch::optim::AdamWParamState& state, Visit&& visit) {
  adam_fields(state, visit);
}
template <class Visit>
void fields(torch::optim::RMSpropParamState& state, Visit&& visit) {
  visit("step", state.step(), [&](auto v) { state.step(v); });
  visit("square_avg", state.square_avg(), [&](auto v) { state.square_avg(v); });
  visit("momentum_buffer", state.momentum_buffer(), [&](auto v) { state.momentum_buffer(v); });
  visit("grad_avg", state.grad_avg(), [&](auto v) { state.grad_avg(v); });
}
template <class Visit>
void fields(torch::optim::AdagradParamState& state, Visit&& visit) {
  visit("step", state.step(), [&](auto v) { state.step(v); });
  visit("sum", state.sum(), [&](auto v) { state.sum(v); });
}

// Each makes what the optimiser makes at its first step; false: it keeps nothing.
bool begin(torch::optim::SGDParamState& state, const torch::optim::SGDOptions& options, const torch::Tensor& like) {
  if (options.momentum() == 0) return false;
  state.momentum_buffer(torch::zeros_like(like));
  return true;
}
template <class State, class Options>
bool begin_adam(State& state, const Options& options, const torch::Tensor& like) {
  state.step(0);
  state.exp_avg(torch::zeros_like(like));
  state.exp_avg_sq(torch::zeros_like(like));
  if (options.amsgrad()) state.max_exp_avg_sq(torch::zeros_like(like));
  return true;
}
bool begin(torch::optim::AdamParamState& state, const torch::optim::AdamOptions& options, const torch::Tensor& like) {
  return begin_adam(state, options, like);
}
bool begin(torch::optim::AdamWParamState& state, const torch::optim::AdamWOptions& options, const torch::Tensor& like) {
  return begin_adam(state, options, like);
}
bool begin(torch::optim::RMSpropParamState& state, const torch::optim::RMSpropOptions& options,
           const torch::Tensor& like) {
  state.step(0);
  state.square_avg(torch::zeros_like(like));
  if (options.momentum() > 0) state.momentum_buffer(torch::zeros_like(like));
  if (options.centered()) state.grad_avg(torch::zeros_like(like));
  return true;
}
bool begin(torch::optim::AdagradParamState& state, const torch::optim::AdagradOptions& options,
           const torch::Tensor& like) {
  state.step(0);
  state.sum(torch::full_like(like, options.initial_accumulator_value()));
  return true;
}

template <class State, class Options>
void create_states(torch::optim::Optimizer& optimizer) {
  torch::NoGradGuard no_grad;
  auto& states = optimizer.state();
  for (const auto& group : optimizer.param_groups()) {
    for (const auto& tensor : group.params()) {
      if (!tensor.requires_grad() || states.find(key_of(states, tensor)) != states.end()) continue;
      auto state = std::make_unique<State>();
      if (begin(*state, static_cast<const Options&>(group.options()), tensor))
        states[key_of(states, tensor)] = std::move(state);
    }
  }
}

/// Calls use.operator()<State, Options>() with the types of the optimiser's state and options; false if the type is
/// none of ours. Exact types only: a class derived from Adam may keep more.
template <class Use>
bool with_state_type(const torch::optim::Optimizer& optimizer, Use&& use) {
  const auto& type = typeid(optimizer);
  if (type == typeid(torch::optim::SGD))
    return use.template operator()<torch::optim::SGDParamState, torch::optim::SGDOptions>(), true;
  if (type == typeid(torch::optim::Adam))
    return use.template operator()<torch::optim::AdamParamState, torch::optim::AdamOptions>(), true;
  if (type == typeid(torch::optim::AdamW))
    return use.template operator()<torch::optim::AdamWParamState, torch::optim::AdamWOptions>(), true;
  if (type == typeid(torch::optim::RMSprop))
    return use.template operator()<torch::optim::RMSpropParamState, torch::optim::RMSpropOptions>(), true;
  if (type == typeid(torch::optim::Adagrad))
    return use.template operator()<torch::optim::AdagradParamState, torch::optim::AdagradOptions>(), true;
  return false;
}

template <class State>
void read_states(torch::optim::Optimizer& optimizer, const NamedTensors& parameters, NamedTensors& out) {
  auto& states = optimizer.state();
  for (const auto& [name, tensor] : parameters) {
    const auto it = states.find(key_of(states, tensor));
    if (it == states.end()) continue;
    fields(static_cast<State&>(*it->second), [&, &parameter = name](const char* field, const auto& value, const auto&) {
      const std::string key = std::string(field) + "." + parameter;
      if constexpr (std::is_same_v<std::decay_t<decltype(value)>, torch::Tensor>) {
        if (value.defined()) out.emplace_back(key, value);
      } else {
        out.emplace_back(key, torch::full({}, value, torch::kInt64));
      }
    });
  }
}

template <class State>
void write_states(torch::optim::Optimizer& optimizer, const NamedTensors& parameters,
                  const std::map<std::string, torch::Tensor>& saved) {
  auto& states = optimizer.state();
  states.clear();
  for (const auto& [name, tensor] : parameters) {
    auto state = std::make_unique<State>();
    bool any = false;
    fields(*state, [&, &parameter = name, &like = tensor](const char* field, const auto& value, const auto& set) {
      const auto it = saved.find(std::string(field) + "." + parameter);
      if (it == saved.end()) return;
      any = true;
      if constexpr (std::is_same_v<std::decay_t<decltype(value)>, torch::Tensor>) {
        if (it->second.sizes() != like.sizes()) {
          throw std::invalid_argument("the saved optimiser state '" + it->first + "' does not fit its parameter");
        }
        set(it->second.to(like.scalar_type(), /*non_blocking=*/false, /*copy=*/true));
      } else {
        set(it->second.template item<std::int64_t>());
      }
    });
    if (any) states[key_of(states, tensor)] = std::move(state);
  }
}

}  // namespace

bool has_known_state(const torch::optim::Optimizer& optimizer) {
  return dynamic_cast<const torch::optim::LBFGS*>(&optimizer) || with_state_type(optimizer, []<class, class>() {});
}

NamedTensors read_optimizer_state(torch::optim::Optimizer& optimizer, const NamedTensors& parameters) {
  NamedTensors out;
  if (auto* const lbfgs = dynamic_cast<torch::optim::LBFGS*>(&optimizer)) return read_lbfgs_state(*lbfgs);
  if (with_state_type(optimizer, [&]<class State, class>() { read_states<State>(optimizer, parameters, out); }))
    return out;
  torch::serialize::OutputArchive archive;
  optimizer.save(archive);
  std::ostringstream stream;
  archive.save_to(stream);
  const std::string bytes = std::move(stream).str();
  auto saved = torch::empty({static_cast<std::int64_t>(bytes.size())}, torch::kUInt8);
  std::copy(bytes.begin(), bytes.end(), saved.data_ptr<std::uint8_t>());
  out.emplace_back("saved", saved);
  return out;
}

void write_optimizer_state(torch::optim::Optimizer& optimizer, const NamedTensors& parameters,
                           const std::map<std::string, torch::Tensor>& state) {
  torch::NoGradGuard no_grad;
  if (auto* const lbfgs = dynamic_cast<torch::optim::LBFGS*>(&optimizer)) return write_lbfgs_state(*lbfgs, state);
  if (with_state_type(optimizer, [&]<class State, class>() { write_states<State>(optimizer, parameters, state); }))
    return;
  const auto it = state.find("saved");
  if (it == state.end()) throw std::invalid_argument("the saved state is of another optimiser");
  const auto bytes = it->second.contiguous();
  std::istringstream stream(std::string(reinterpret_cast<const char*>(bytes.data_ptr<std::uint8_t>()),
                                        static_cast<std::size_t>(bytes.numel())));
  torch::serialize::InputArchive archive;
  archive.load_from(stream);
  optimizer.load(archive);
}

void create_optimizer_state(torch::optim::Optimizer& optimizer) {
  if (!with_state_type(optimizer, [&]<class State, class Options>() { create_states<State, Options>(optimizer); }))
    throw std::invalid_argument(
        "the state of this optimiser cannot be averaged; that of SGD, Adam, AdamW, RMSprop and Adagrad can");
}

void clear_optimizer_state(torch::optim::Optimizer& optimizer) { optimizer.state().clear(); }

std::vector<double> step_marks(torch::optim::Optimizer& optimizer, const NamedTensors& parameters) {
  constexpr std::int64_t kNumbers = 8;
  std::vector<double> marks;
  with_state_type(optimizer, [&]<class State, class>() {
    auto& states = optimizer.state();
    // From the output's side: there gradients are 0 least often.
    for (auto named = parameters.rbegin(); named != parameters.rend() && marks.empty(); ++named) {
      const auto it = states.find(key_of(states, named->second));
      if (it == states.end()) continue;
      fields(static_cast<State&>(*it->second), [&](std::string_view field, const auto& value, const auto&) {
        if constexpr (!std::is_same_v<std::decay_t<decltype(value)>, torch::Tensor>) {
          marks.push_back(static_cast<double>(value));
        } else if (marks.empty() && field == "momentum_buffer" && value.defined()) {
          const auto numbers = value.reshape(-1).narrow(0, 0, std::min(kNumbers, value.numel())).to(torch::kFloat64);
          marks.assign(numbers.template data_ptr<double>(), numbers.template data_ptr<double>() + numbers.numel());
        }
      });
    }
  });
  return marks;
}

std::vector<double> learning_rates(const torch::optim::Optimizer& optimizer) {
  std::vector<double> rates;
  for (const auto& group : optimizer.param_groups()) rates.push_back(group.options().get_lr());
  return rates;
}

void set_learning_rates(torch::optim::Optimizer& optimizer, const std::vector<double>& rates) {
  auto& groups = optimizer.param_groups();
  for (std::size_t i = 0; i < groups.size() && i < rates.size(); ++i) groups[i].options().set_lr(rates[i]);
}

}  // namespace paceline::train
