#include "algorithms/train/parameters.h"

#include <cstring>
#include <set>
#include <stdexcept>

namespace paceline::train {
namespace {

constexpr std::size_t kKnownBuffersMax = 8;

[[noreturn]] void refuse(const std::string& text) { throw std::invalid_argument("share: " + text); }

void check_shareable(const std::string& name, const torch::Tensor& tensor) {
  if (!tensor.device().is_cpu()) refuse("parameter '" + name + "' is not on the CPU, which is where training runs yet");
  if (tensor.scalar_type() != torch::kFloat32) {
    refuse("parameter '" + name + "' is " + std::string(c10::toString(tensor.scalar_type())) +
           ": only float32 can be shared yet; call net->to(torch::kFloat32) before share");
  }
}

}  // namespace

Parameters::Parameters(const torch::nn::Module& module, torch::optim::Optimizer& optimizer) {
  std::map<void*, std::string> seen;  // By TensorImpl, and by memory: two tensors may be views of one.
  std::set<void*> impls;
  for (const auto& item : module.named_parameters()) {
    const auto& tensor = item.value();
    impls.insert(tensor.unsafeGetTensorImpl());
    if (tensor.numel() > 0) {
      if (const auto [it, is_new] = seen.emplace(tensor.data_ptr(), item.key()); !is_new) {
        refuse("parameters '" + it->second + "' and '" + item.key() +
               "' are one tensor: register it once and use it twice");
      }
    }
    if (!tensor.requires_grad()) continue;
    check_shareable(item.key(), tensor);
    trainable_.emplace_back(item.key(), tensor);
    all_.push_back(tensor);
  }
  if (trainable_.empty()) refuse("the model has no trainable parameter");
  for (const auto& group : optimizer.param_groups()) {
    for (const auto& tensor : group.params()) {
      if (!impls.contains(tensor.unsafeGetTensorImpl())) {
        refuse("the optimiser holds a tensor that is not a parameter of the model: build it from net->parameters()");
      }
    }
  }
  for (const auto& item : module.named_buffers()) {
    if (item.value().defined() && item.value().scalar_type() == torch::kFloat32 && item.value().device().is_cpu()) {
      all_.push_back(item.value());
    }
  }
  torch::NoGradGuard no_grad;
  for (auto& tensor : all_) {
    if (!tensor.is_contiguous()) tensor.set_data(tensor.contiguous());
    places_.push_back(tensor.data_ptr());
    elements_ += static_cast<std::uint64_t>(tensor.numel());
  }
  has_gradient_.resize(trainable_.size());
  elements_ += has_gradient_.size();
}

std::vector<torch::Tensor> Parameters::views(float* base) const {
  std::vector<torch::Tensor> made;
  made.reserve(all_.size());
  for (const auto& tensor : all_) {
    made.push_back(torch::from_blob(base, tensor.sizes(), torch::kFloat32));
    base += tensor.numel();
  }
  return made;
}

void Parameters::place(float* base) {
  torch::NoGradGuard no_grad;
  const auto targets = views(base);
  for (std::size_t i = 0; i < all_.size(); ++i) targets[i].copy_(all_[i]);
  move_to(base);
}

void Parameters::move_to(float* base) {
  torch::NoGradGuard no_grad;
  auto it = known_.find(base);
  if (it == known_.end()) {
    if (known_.size() >= kKnownBuffersMax) known_.clear();
    it = known_.emplace(base, views(base)).first;
  }
  for (std::size_t i = 0; i < all_.size(); ++i) {
    all_[i].set_data(it->second[i]);
    all_[i].unsafeGetTensorImpl()->bump_version();
    places_[i] = all_[i].data_ptr();
  }
}

void Parameters::leave() {
  torch::NoGradGuard no_grad;
  for (std::size_t i = 0; i < all_.size(); ++i) {
    all_[i].set_data(all_[i].detach().clone());
    all_[i].unsafeGetTensorImpl()->bump_version();
    places_[i] = all_[i].data_ptr();
  }
  known_.clear();
}

void Parameters::check_in_place() const {
  for (std::size_t i = 0; i < all_.size(); ++i) {
    if (all_[i].data_ptr() == places_[i]) continue;
    const std::string name = i < trainable_.size() ? "'" + trainable_[i].first + "'" : "a buffer";
    throw std::logic_error("parameters moved: " + name +
                           " is no longer where share put it; call share after load or to");
  }
}

void Parameters::mark_buffers() {
  buffers_marked_.clear();
  for (std::size_t i = trainable_.size(); i < all_.size(); ++i) {
    const float* const values = all_[i].data_ptr<float>();
    buffers_marked_.insert(buffers_marked_.end(), values, values + all_[i].numel());
  }
  buffers_seen_ = buffers_marked_;
  buffer_changes_.resize(buffers_marked_.size());
}

void Parameters::swap_buffers_with_mark() {
  for (std::size_t i = trainable_.size(), at = 0; i < all_.size(); ++i) {
    const auto elements = static_cast<std::size_t>(all_[i].numel());
    std::swap_ranges(buffers_marked_.begin() + static_cast<std::ptrdiff_t>(at),
                     buffers_marked_.begin() + static_cast<std::ptrdiff_t>(at + elements), all_[i].data_ptr<float>());
    at += elements;
  }
}

const std::vector<paceline_span>& Parameters::gradients(float buffer_scale) {
  contiguous_.clear();
  pieces_.clear();
  std::size_t at = 0;
  for (std::size_t i = 0; i < all_.size(); ++i) {
    const auto elements = static_cast<std::uint64_t>(all_[i].numel());
    void* data = nullptr;
    if (i < trainable_.size() && all_[i].grad().defined()) {
      contiguous_.push_back(all_[i].grad().is_sparse() ? all_[i].grad().to_dense() : all_[i].grad().contiguous());
      data = contiguous_.back().data_ptr();
    } else if (i >= trainable_.size() && buffer_scale != 0) {
      const float* const values = all_[i].data_ptr<float>();
      data = buffer_changes_.data() + at;
      for (std::uint64_t k = 0; k < elements; ++k, ++at) {
        buffer_changes_[at] = buffer_scale * (values[k] - buffers_seen_[at]);
        buffers_seen_[at] = values[k];
      }
    }
    if (i < trainable_.size()) has_gradient_[i] = data ? 1 : 0;
    pieces_.push_back({data, elements});
  }
  pieces_.push_back({has_gradient_.data(), has_gradient_.size()});
  return pieces_;
}

void Parameters::lend_gradients(float* flat) {
  own_gradients_.clear();
  const float* any_has = flat + elements_ - has_gradient_.size();
  for (auto& [name, tensor] : trainable_) {
    own_gradients_.push_back(tensor.grad());
    tensor.mutable_grad() = *any_has++ > 0 ? torch::from_blob(flat, tensor.sizes(), torch::kFloat32) : torch::Tensor();
    flat += tensor.numel();
  }
}

void Parameters::apply_buffers(const float* flat) {
  for (const auto& [name, tensor] : trainable_) flat += tensor.numel();
  for (std::size_t i = trainable_.size(), at = 0; i < all_.size(); ++i) {
    auto* const values = all_[i].data_ptr<float>();
    for (std::int64_t k = 0; k < all_[i].numel(); ++k, ++at) values[k] = buffers_marked_[at] + flat[at];
  }
}

void Parameters::take_back_gradients() {
  for (std::size_t i = 0; i < own_gradients_.size(); ++i) trainable_[i].second.mutable_grad() = own_gradients_[i];
  own_gradients_.clear();
}

void Parameters::add_gradients_to(torch::Tensor& flat, bool first) {
  torch::NoGradGuard no_grad;
  if (first) flat.zero_();
  std::int64_t at = 0;
  for (const auto& piece : gradients(0)) {
    const auto elements = static_cast<std::int64_t>(piece.elements);
    if (piece.data) flat.narrow(0, at, elements).add_(torch::from_blob(piece.data, {elements}, torch::kFloat32));
    at += elements;
  }
}

}  // namespace paceline::train
