#include "algorithms/train/parameters.h"

#include <algorithm>
#include <set>
#include <stdexcept>

namespace paceline::train {
namespace {

constexpr std::size_t kKnownBuffersMax = 8;

[[noreturn]] void refuse(const std::string& text) { throw std::invalid_argument("share: " + text); }

void check_shareable(const std::string& name, const torch::Tensor& tensor) {
  if (!tensor.device().is_cpu()) refuse("parameter '" + name + "' is not on the CPU, which is where training runs yet");
  if (!torch::isFloatingType(tensor.scalar_type())) {
    refuse("parameter '" + name + "' is " + std::string(c10::toString(tensor.scalar_type())) +
           ": float64, float32, bfloat16 and float16 can be shared");
  }
}

std::uint64_t size_of(const torch::Tensor& tensor) { return static_cast<std::uint64_t>(tensor.numel()); }

/// Numbers of the shared type at an address.
class Numbers {
 public:
  Numbers(void* data, torch::ScalarType type) : data_(data), wide_(type == torch::kFloat64) {}
  double operator[](std::size_t at) const {
    return wide_ ? static_cast<double*>(data_)[at] : double{static_cast<float*>(data_)[at]};
  }
  void set(std::size_t at, double value) {
    wide_ ? void(static_cast<double*>(data_)[at] = value)
          : void(static_cast<float*>(data_)[at] = static_cast<float>(value));
  }

 private:
  void* data_;
  bool wide_;
};

torch::Tensor dense_gradient(const torch::Tensor& tensor) {
  return tensor.grad().is_sparse() ? tensor.grad().to_dense() : tensor.grad().contiguous();
}

}  // namespace

std::size_t Parameters::add(const torch::nn::Module& module, torch::optim::Optimizer& optimizer) {
  Share share;
  share.first = parameters();
  share.offset = trainable_elements();
  std::set<void*> impls;
  for (const auto& item : module.named_parameters()) {
    const auto& tensor = item.value();
    impls.insert(tensor.unsafeGetTensorImpl());
    if (tensor.numel() > 0) {
      if (const auto [it, is_new] = registered_.emplace(tensor.data_ptr(), item.key()); !is_new) {
        refuse("parameters '" + it->second + "' and '" + item.key() +
               "' are one tensor: register it once, in one share, and use it twice");
      }
    }
    if (!tensor.requires_grad()) continue;
    check_shareable(item.key(), tensor);
    share.trainable.emplace_back(item.key(), tensor);
    share.elements += size_of(tensor);
  }
  if (share.trainable.empty()) refuse("the model has no trainable parameter");
  for (const auto& group : optimizer.param_groups()) {
    for (const auto& tensor : group.params()) {
      if (!impls.contains(tensor.unsafeGetTensorImpl())) {
        refuse("the optimiser holds a tensor that is not a parameter of the model: build it from net->parameters()");
      }
    }
  }
  for (const auto& item : module.named_buffers()) {
    const auto& tensor = item.value();
    if (with_buffers_ && tensor.defined() && tensor.is_floating_point() && tensor.device().is_cpu())
      module_buffers_.push_back(tensor);
  }
  shares_.push_back(std::move(share));
  arrange();
  return shares_.size() - 1;
}

void Parameters::set_state(std::vector<torch::Tensor> tensors) {
  const std::uint64_t before = elements_;
  state_ = std::move(tensors);
  arrange();
  if (base_ == nullptr) return;
  if (elements_ != before)
    throw std::invalid_argument("the optimiser's state has other tensors than when it was shared");
  place(base_);
}

void Parameters::arrange() {
  torch::NoGradGuard no_grad;
  all_.clear();
  places_.clear();
  known_.clear();
  for (const auto& share : shares_)
    for (const auto& [name, tensor] : share.trainable) all_.push_back(tensor);
  const auto parameters = static_cast<std::int64_t>(all_.size());
  const auto is_wide = [](const auto& tensor) { return tensor.scalar_type() == torch::kFloat64; };
  const bool wide = std::any_of(all_.begin(), all_.end(), is_wide);
  type_ = wide ? torch::kFloat64 : torch::kFloat32;
  buffers_.clear();
  std::copy_if(module_buffers_.begin(), module_buffers_.end(), std::back_inserter(buffers_),
               [&](const auto& tensor) { return wide || !is_wide(tensor); });
  all_.insert(all_.end(), buffers_.begin(), buffers_.end());
  all_.insert(all_.end(), state_.begin(), state_.end());
  has_gradient_ = torch::zeros({parameters}, type_);
  elements_ = static_cast<std::uint64_t>(parameters);
  for (auto& tensor : all_) {
    if (!tensor.is_contiguous()) tensor.set_data(tensor.contiguous());
    places_.push_back(tensor.data_ptr());
    elements_ += size_of(tensor);
  }
  converts_ = !std::all_of(all_.begin(), all_.end(), [this](const auto& tensor) { return lives_in_window(tensor); });
  marked_ = flat_buffers();
  seen_ = flat_buffers();
  now_ = flat_buffers();
}

std::uint64_t Parameters::trainable_elements() const {
  return shares_.empty() ? 0 : shares_.back().offset + shares_.back().elements;
}

void* Parameters::behind(void* base, std::uint64_t elements) const {
  return static_cast<std::byte*>(base) + elements * torch::elementSize(type_);
}

std::vector<torch::Tensor> Parameters::views(const std::vector<torch::Tensor>& tensors, void* base) const {
  std::vector<torch::Tensor> made;
  made.reserve(tensors.size());
  for (const auto& tensor : tensors) {
    made.push_back(torch::from_blob(base, tensor.sizes(), type_));
    base = behind(base, size_of(tensor));
  }
  return made;
}

void Parameters::place(void* base) {
  torch::NoGradGuard no_grad;
  const auto targets = views(all_, base);
  for (std::size_t i = 0; i < all_.size(); ++i)
    if (targets[i].data_ptr() != all_[i].data_ptr()) targets[i].copy_(all_[i]);
  move_to(base);
}

void Parameters::move_to(void* base) {
  torch::NoGradGuard no_grad;
  auto it = known_.find(base);
  if (it == known_.end()) {
    if (known_.size() >= kKnownBuffersMax) known_.clear();
    it = known_.emplace(base, views(all_, base)).first;
  }
  for (std::size_t i = 0; i < all_.size(); ++i) {
    if (!lives_in_window(all_[i])) {
      all_[i].copy_(it->second[i]);
      continue;
    }
    all_[i].set_data(it->second[i]);
    all_[i].unsafeGetTensorImpl()->bump_version();
    places_[i] = all_[i].data_ptr();
  }
  base_ = base;
}

void Parameters::write_converted() {
  if (!converts_ || base_ == nullptr) return;
  torch::NoGradGuard no_grad;
  const auto& there = known_.at(base_);
  for (std::size_t i = 0; i < all_.size(); ++i)
    if (!lives_in_window(all_[i])) there[i].copy_(all_[i]);
}

void Parameters::leave() {
  torch::NoGradGuard no_grad;
  for (std::size_t i = 0; i < all_.size(); ++i) {
    if (!lives_in_window(all_[i])) continue;
    all_[i].set_data(all_[i].detach().clone());
    all_[i].unsafeGetTensorImpl()->bump_version();
    places_[i] = all_[i].data_ptr();
  }
  known_.clear();
  base_ = nullptr;
}

std::string Parameters::describe(std::size_t index) const {
  for (std::size_t number = 0; number < shares_.size(); ++number) {
    const auto& share = shares_[number];
    if (index < share.first || index >= share.first + share.trainable.size()) continue;
    const std::string of = shares_.size() > 1 ? " of share " + std::to_string(number) : "";
    return "'" + share.trainable[index - share.first].first + "'" + of;
  }
  return index < parameters() + buffers_.size() ? "a buffer" : "a tensor of the optimiser";
}

void Parameters::check_in_place() const {
  for (std::size_t i = 0; i < all_.size(); ++i) {
    if (all_[i].data_ptr() == places_[i]) continue;
    throw std::logic_error("parameters moved: " + describe(i) +
                           " is no longer where share put it; call share after load or to");
  }
}

const std::vector<paceline_span>& Parameters::gradients(double buffer_scale, void* taken) {
  torch::NoGradGuard no_grad;
  contiguous_.clear();
  pieces_.clear();
  Numbers has_one(has_gradient_.data_ptr(), type_);
  for (std::size_t i = 0; i < parameters(); ++i) {
    const auto elements = size_of(all_[i]);
    if (taken) {
      pieces_.push_back({has_one[i] > 0 ? taken : nullptr, elements});
      taken = behind(taken, elements);
      continue;
    }
    const bool has = all_[i].grad().defined();
    if (has) contiguous_.push_back(dense_gradient(all_[i]).to(type_));
    has_one.set(i, has ? 1 : 0);
    pieces_.push_back({has ? contiguous_.back().data_ptr() : nullptr, elements});
  }
  if (!buffers_.empty()) {
    read_buffers(now_);
    seen_.all.sub_(now_.all).mul_(-buffer_scale);  // What changed; what is there now is what was seen.
    std::swap(seen_, now_);
    for (const auto& changes : now_.each) pieces_.push_back({changes.data_ptr(), size_of(changes)});
  }
  for (const auto& tensor : state_) pieces_.push_back({nullptr, size_of(tensor)});
  pieces_.push_back({has_gradient_.data_ptr(), parameters()});
  return pieces_;
}

void Parameters::add_gradients_to(std::size_t number, torch::Tensor& flat, bool first) {
  torch::NoGradGuard no_grad;
  const auto& share = shares_[number];
  Numbers has_one(has_gradient_.data_ptr(), type_);
  Numbers sums(behind(flat.data_ptr(), elements_ - parameters()), type_);
  auto at = static_cast<std::int64_t>(share.offset);
  for (std::size_t i = 0; i < share.trainable.size(); ++i) {
    const auto& tensor = share.trainable[i].second;
    auto sum = flat.narrow(0, at, tensor.numel());
    at += tensor.numel();
    const bool has = tensor.grad().defined();
    const std::size_t index = share.first + i;
    has_one.set(index, has ? 1 : 0);
    sums.set(index, (first ? 0 : sums[index]) + has_one[index]);
    if (has && first) {
      sum.copy_(dense_gradient(tensor).view({-1}));
    } else if (has) {
      sum.add_(dense_gradient(tensor).view({-1}));
    } else if (first) {
      sum.zero_();
    }
  }
}

void Parameters::divide(std::size_t number, torch::Tensor& flat, double divisor) const {
  torch::NoGradGuard no_grad;
  const auto& share = shares_[number];
  flat.narrow(0, static_cast<std::int64_t>(share.offset), static_cast<std::int64_t>(share.elements)).div_(divisor);
}

void Parameters::lend_gradients(std::size_t number, void* flat) {
  torch::NoGradGuard no_grad;
  auto& share = shares_[number];
  share.own_gradients.clear();
  const Numbers any_has(behind(flat, elements_ - parameters()), type_);
  flat = behind(flat, share.offset);
  for (std::size_t i = 0; i < share.trainable.size(); ++i) {
    auto& tensor = share.trainable[i].second;
    share.own_gradients.push_back(tensor.grad());
    tensor.mutable_grad() = any_has[share.first + i] > 0
                                ? torch::from_blob(flat, tensor.sizes(), type_).to(tensor.scalar_type())
                                : torch::Tensor();
    flat = behind(flat, size_of(tensor));
  }
}

void Parameters::take_back_gradients(std::size_t number) {
  auto& share = shares_[number];
  for (std::size_t i = 0; i < share.own_gradients.size(); ++i)
    share.trainable[i].second.mutable_grad() = share.own_gradients[i];
  share.own_gradients.clear();
}

Parameters::FlatBuffers Parameters::flat_buffers() const {
  std::int64_t elements = 0;
  for (const auto& buffer : buffers_) elements += buffer.numel();
  FlatBuffers made{torch::zeros({elements}, type_), {}};
  made.each = views(buffers_, made.all.data_ptr());
  return made;
}

void Parameters::read_buffers(FlatBuffers& into) const {
  for (std::size_t i = 0; i < buffers_.size(); ++i) into.each[i].copy_(buffers_[i]);
}

void Parameters::write_buffers(const FlatBuffers& from) {
  for (std::size_t i = 0; i < buffers_.size(); ++i) buffers_[i].copy_(from.each[i]);
}

void Parameters::mark_buffers() {
  if (buffers_.empty()) return;
  torch::NoGradGuard no_grad;
  read_buffers(marked_);
  seen_.all.copy_(marked_.all);
}

void Parameters::swap_buffers_with_mark() {
  if (buffers_.empty()) return;
  torch::NoGradGuard no_grad;
  read_buffers(now_);
  write_buffers(marked_);
  std::swap(marked_, now_);
}

void Parameters::apply_buffers(void* flat) {
  if (buffers_.empty()) return;
  torch::NoGradGuard no_grad;
  const auto changes = torch::from_blob(behind(flat, trainable_elements()), now_.all.sizes(), type_);
  torch::add_out(now_.all, marked_.all, changes);
  write_buffers(now_);
}

}  // namespace paceline::train
