#pragma once

#include <torch/torch.h>
#include <map>
#include <string>
#include <vector>

#include "algorithms/session/session.h"
#include "algorithms/train/optimizer_state.h"

namespace paceline::train {

/// The tensors that workers share, in one fixed order, each kind for one share (model and optimiser) after the other:
///
///   trainable parameters
///   float buffers of modules (BatchNorm's running statistics), unless each worker keeps its own
///   tensors of the optimisers, where these are averaged
///   a number for each parameter that says whether it has a gradient (read where gradients are averaged)
///
/// They are averaged as numbers of one type: float64 if a trainable parameter is, else float32. Tensors of that type
/// lie in the buffers of a window and are moved between them without moving bytes. Those of another (bfloat16, float16;
/// with a float64 parameter float32, too) keep memory of their own and are converted on their way there and back.
/// Frozen parameters, integer buffers and buffers wider than the shared type are not in it: each worker has its own.
/// Owned by the compute thread.
class Parameters {
 public:
  explicit Parameters(bool with_buffers = true) : with_buffers_(with_buffers) {}

  /// One more share; its number. Throws std::invalid_argument, naming the tensor: registered twice, also in an earlier
  /// share, not of real floating point numbers on the CPU, none to train, or an optimiser over a tensor that is not the
  /// module's.
  std::size_t add(const torch::nn::Module& module, torch::optim::Optimizer& optimizer);
  /// Tensors of the optimisers that move with the parameters; they replace those that were given before, of the same
  /// sizes (std::invalid_argument), and take their place.
  void set_state(std::vector<torch::Tensor> tensors);

  /// What is averaged: float32 or float64. The address of a buffer below is that of such numbers.
  torch::ScalarType type() const { return type_; }
  std::uint64_t elements() const { return elements_; }
  std::uint64_t trainable_elements() const;
  const NamedTensors& trainable(std::size_t share) const { return shares_[share].trainable; }
  /// In their order.
  const std::vector<torch::Tensor>& all() const { return all_; }

  /// Copies all values to `base` and lets the tensors live there.
  void place(void* base);
  /// The tensors live at `base` from now on, with the values that are there. No bytes move, but for those of another
  /// type; a graph kept across it throws.
  void move_to(void* base);
  /// Tensors of another type write their values to where the others live: to be called before these are averaged.
  void write_converted();
  /// Gives every tensor memory of its own again.
  void leave();
  /// Throws std::logic_error if a tensor is no longer where it was put ("parameters moved: ...").
  void check_in_place() const;

  /// The gradients in order, for step_gradients; parameters without one have data NULL, and 0 instead of 1 at the end.
  /// Read from `taken` where it is given (what add_gradients_to filled), else where they lie. For float buffers, which
  /// have no gradient: `buffer_scale` times what they changed by since the last call or mark_buffers(). Valid until the
  /// next call.
  const std::vector<paceline_span>& gradients(double buffer_scale, void* taken = nullptr);
  /// flat += gradients of a share, or flat = gradients (parameters without one: zero). `flat` has elements() numbers.
  void add_gradients_to(std::size_t share, torch::Tensor& flat, bool first);
  /// Divides a share's gradients in `flat`.
  void divide(std::size_t share, torch::Tensor& flat, double divisor) const;
  /// `.grad` of a share becomes a view of `flat` (of another type: a copy) until take_back_gradients(); undefined where
  /// no worker had one, zero for those that had none where another worker had.
  void lend_gradients(std::size_t share, void* flat);
  void take_back_gradients(std::size_t share);

  /// An update begins: buffers are the same on all workers now.
  void mark_buffers();
  /// Buffers are as at the mark, and what they were is kept; called again, the other way round.
  void swap_buffers_with_mark();
  /// Buffers move on from the mark by the averaged changes that follow the gradients in `flat`.
  void apply_buffers(void* flat);

 private:
  struct Share {
    NamedTensors trainable;
    std::size_t first = 0;     ///< Number of its first parameter among those of all shares.
    std::uint64_t offset = 0;  ///< Elements before it.
    std::uint64_t elements = 0;
    std::vector<torch::Tensor> own_gradients;
  };
  void arrange();
  /// Those of `tensors`, one after the other from `base` on, as numbers of the shared type.
  std::vector<torch::Tensor> views(const std::vector<torch::Tensor>& tensors, void* base) const;
  bool lives_in_window(const torch::Tensor& tensor) const { return tensor.scalar_type() == type_; }
  void* behind(void* base, std::uint64_t elements) const;
  std::size_t parameters() const {
    return shares_.empty() ? 0 : shares_.back().first + shares_.back().trainable.size();
  }
  std::string describe(std::size_t index) const;

  bool with_buffers_;
  std::vector<Share> shares_;
  torch::ScalarType type_ = torch::kFloat32;
  std::vector<torch::Tensor> module_buffers_;  // All floats of the modules.
  std::vector<torch::Tensor> buffers_;         // Those that are shared.
  std::vector<torch::Tensor> state_;
  std::vector<torch::Tensor> all_;           // Trainable parameters, buffers_, state_.
  std::map<void*, std::string> registered_;  // Memory of every parameter: two tensors may be views of one.
  std::uint64_t elements_ = 0;
  void* base_ = nullptr;
  bool converts_ = false;                              // Some of all_ are of another type.
  std::vector<void*> places_;                          // Where each of all_ should lie.
  std::map<void*, std::vector<torch::Tensor>> known_;  // Views of buffers seen before: few, and dear to make.
  std::vector<torch::Tensor> contiguous_;
  std::vector<paceline_span> pieces_;
  /// buffers_ one behind the other, and a view of each.
  struct FlatBuffers {
    torch::Tensor all;
    std::vector<torch::Tensor> each;
  };
  FlatBuffers flat_buffers() const;
  void read_buffers(FlatBuffers& into) const;
  void write_buffers(const FlatBuffers& from);
  FlatBuffers marked_, seen_, now_;  // At the mark, when last looked at, and for what is computed of them.
  torch::Tensor has_gradient_;       // 1 or 0 for each parameter.
};

}  // namespace paceline::train
