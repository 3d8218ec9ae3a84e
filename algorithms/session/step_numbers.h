#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "algorithms/session/session.h"
#include "algorithms/strategy.h"
#include "runtime/memory/window.h"

namespace paceline::session {

/// What a worker computes itself with its model and its gradients, and what it keeps for that between steps: sums over
/// mini-batches, the outer step (algorithms/outer.h), local steps that stand apart (algorithms/step_apart.h). Bytes are
/// numbers of the window's type.
class StepNumbers {
 public:
  /// `outer_elements`: how many of the model an outer step is made with.
  StepNumbers(const algorithms::Outer& outer, const memory::Window::Layout& layout, std::uint64_t outer_elements)
      : outer_(outer), layout_(layout), outer_elements_(outer_elements) {}

  /// into := base + pieces (base null: into := pieces). False: the pieces are not a whole model.
  bool add(std::span<const paceline_span> pieces, std::byte* into, const std::byte* base) const;
  void scale(std::byte* data, double factor) const;
  /// The sum of the gradients of a batch that stays with its worker.
  std::byte* batch();

  /// Where the block began, then the momentum; empty: there is no outer step, or no block has begun.
  std::span<const std::byte> outer_state() const { return outer_state_; }
  /// `false`: it is not as long as such a state is.
  bool set_outer_state(std::span<const std::byte> state);
  /// Where no state was set: the first block begins here.
  void begin_first_block(std::span<const std::byte> model);
  /// `block`: the mean at a block's end, which becomes where the next one starts; `last`: the mean that is the job's
  /// model instead. Every worker computes the same from the same numbers.
  void begin_next_block(std::span<std::byte> block, double learning_rate, bool last);

  /// A local step begins.
  void begin_step_apart(std::span<const std::byte> model) { start_.assign(model.begin(), model.end()); }
  /// It has ended: `model` is where it began again.
  void take_step_apart(std::span<std::byte> model);
  /// `result`: what so many have averaged.
  void put_step_together(std::span<std::byte> result, std::int64_t summands);

 private:
  std::size_t width() const { return memory::size_of(layout_.dtype); }

  const algorithms::Outer outer_;
  const memory::Window::Layout layout_;
  const std::uint64_t outer_elements_;
  std::vector<std::byte> outer_state_;
  std::vector<std::byte> start_, change_;  ///< Of the local step.
  std::vector<std::byte> batch_;
};

}  // namespace paceline::session
