#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "runtime/collective/averager.h"
#include "runtime/memory/window.h"

namespace paceline::scheduler {

/// The model that all agents carry on in the same way after each mean of all (an outer step with momentum). Each agent
/// has its copy, so that a worker that has missed any number of means takes the newest model from its own agent. Owned
/// by the coordinator of a job; no I/O. Three models of memory.
class OuterModel {
 public:
  /// Makes the next model and momentum of a mean, which becomes the next model, too; element by element. Called on the
  /// averaging threads, for disjoint ranges at once.
  using Step = std::function<void(memory::Dtype, std::span<std::byte> model, std::span<std::byte> momentum,
                                  std::span<std::byte> mean)>;

  /// The step is made with the first `elements` numbers; what lies behind them is only averaged.
  OuterModel(Step step, std::uint64_t elements) : step_(std::move(step)), elements_(elements) {}

  /// All start from the same model, without momentum.
  void begin(std::span<const std::byte> start, memory::Dtype dtype);
  bool has_begun() const { return !model_.empty(); }
  const void* data() const { return model_.data(); }
  /// Makes the reduction's sum, times `scale`, the mean that the model is carried on with; outputs that are added to it
  /// get the new model. The model must outlive the reduction.
  void carry_on(collective::Reduction& reduction, double scale);

 private:
  void carry_on(std::uint64_t begin, std::uint64_t end);

  Step step_;
  std::uint64_t elements_;
  memory::Dtype dtype_ = memory::Dtype::f32;
  std::vector<std::byte> model_, momentum_, mean_;
};

}  // namespace paceline::scheduler
