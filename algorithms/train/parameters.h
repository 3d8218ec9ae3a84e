#pragma once

#include <torch/torch.h>
#include <map>
#include <string>
#include <vector>

#include "algorithms/session/session.h"

namespace paceline::train {

/// The tensors that workers share, in one fixed order: trainable parameters, then float buffers of modules (BatchNorm's
/// running statistics), then, for gradients, a number for each parameter that says whether it has one. Knows where each
/// lies and moves them between buffers of a window without moving bytes. Frozen parameters and other buffers are not in
/// it. Owned by the compute thread.
class Parameters {
 public:
  /// Throws std::invalid_argument, naming the tensor: registered twice, not float32 on the CPU, none to train, or an
  /// optimiser over a tensor that is not the module's.
  Parameters(const torch::nn::Module& module, torch::optim::Optimizer& optimizer);

  std::uint64_t elements() const { return elements_; }
  const std::vector<std::pair<std::string, torch::Tensor>>& trainable() const { return trainable_; }

  /// Copies all values to `base` and lets the tensors live there.
  void place(float* base);
  /// The tensors live at `base` from now on, with the values that are there. No bytes move; a graph kept across it
  /// throws.
  void move_to(float* base);
  /// Gives every tensor memory of its own again.
  void leave();
  /// Throws std::logic_error if a tensor is no longer where it was put ("parameters moved: ...").
  void check_in_place() const;

  /// The gradients in order, for step_gradients; parameters without one have data NULL, and 0 instead of 1 at the end.
  /// For float buffers, which have no gradient: `buffer_scale` times what they changed by since the last call or
  /// mark_buffers(); 0: data NULL. Valid until the next call.
  const std::vector<paceline_span>& gradients(float buffer_scale);
  /// An update begins: buffers are the same on all workers now.
  void mark_buffers();
  /// Buffers are as at the mark, and what they were is kept; called again, the other way round.
  void swap_buffers_with_mark();
  /// `.grad` becomes a view of `flat` until take_back_gradients(); undefined where no worker had one, zero for those
  /// that had none where another worker had.
  void lend_gradients(float* flat);
  /// Buffers move on from the mark by the averaged changes that follow the gradients in `flat`.
  void apply_buffers(const float* flat);
  void take_back_gradients();
  /// flat += gradients, or flat = gradients (parameters without one: zero).
  void add_gradients_to(torch::Tensor& flat, bool first);

 private:
  std::vector<torch::Tensor> views(float* base) const;

  std::vector<std::pair<std::string, torch::Tensor>> trainable_;
  std::vector<torch::Tensor> all_;  // trainable_, then the float buffers.
  std::uint64_t elements_ = 0;
  std::vector<void*> places_;                           // Where each of all_ should lie.
  std::map<float*, std::vector<torch::Tensor>> known_;  // Views of buffers seen before: few, and dear to make.
  std::vector<torch::Tensor> own_gradients_;
  std::vector<torch::Tensor> contiguous_;
  std::vector<paceline_span> pieces_;
  // Float buffers, flat: at the mark, when last looked at, and scaled changes since then.
  std::vector<float> buffers_marked_, buffers_seen_, buffer_changes_;
  std::vector<float> has_gradient_;  ///< 1 or 0 for each of trainable_.
};

}  // namespace paceline::train
