#include "algorithms/session/step_numbers.h"

#include <algorithm>
#include <cstring>

#include "algorithms/outer.h"
#include "algorithms/step_apart.h"
#include "runtime/collective/kernels.h"

namespace paceline::session {
namespace {

/// Calls `step` with a number of the type, and how to see bytes as such numbers.
template <class Step>
void with_type(memory::Dtype dtype, const Step& step) {
  const auto call = [&](auto type) {
    using T = decltype(type);
    step(type, [](auto& bytes) { return std::span(reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)); });
  };
  dtype == memory::Dtype::f64 ? call(double{}) : call(float{});
}

}  // namespace

bool StepNumbers::add(std::span<const paceline_span> pieces, std::byte* into, const std::byte* base) const {
  std::uint64_t at = 0;
  for (const auto& piece : pieces) {
    if (piece.elements > layout_.elements - at) return false;
    std::byte* o = into + at * width();
    const std::byte* b = base ? base + at * width() : nullptr;
    if (b && piece.data) {
      const void* inputs[] = {b, piece.data};
      collective::sum_into(o, 1.0, inputs, piece.elements, layout_.dtype);
    } else if (piece.data) {
      std::memcpy(o, piece.data, piece.elements * width());
    } else if (b) {
      if (b != o) std::memcpy(o, b, piece.elements * width());
    } else {
      std::memset(o, 0, piece.elements * width());
    }
    at += piece.elements;
  }
  return at == layout_.elements;
}

void StepNumbers::scale(std::byte* data, double factor) const {
  const void* inputs[] = {data};
  collective::sum_into(data, factor, inputs, layout_.elements, layout_.dtype);
}

std::byte* StepNumbers::batch() {
  batch_.resize(layout_.elements * width());
  return batch_.data();
}

bool StepNumbers::set_outer_state(std::span<const std::byte> state) {
  if (outer_.kind == algorithms::Outer::Kind::none || state.size() != 2 * outer_elements_ * width()) return false;
  outer_state_.assign(state.begin(), state.end());
  return true;
}

void StepNumbers::begin_first_block(std::span<const std::byte> model) {
  if (outer_.kind == algorithms::Outer::Kind::none || !outer_state_.empty()) return;
  const auto start = model.first(outer_elements_ * width());
  outer_state_.assign(start.begin(), start.end());
  outer_state_.resize(2 * start.size());
}

void StepNumbers::begin_next_block(std::span<std::byte> block, double learning_rate, bool last) {
  with_type(layout_.dtype, [&](auto type, const auto& as) {
    const auto mean = as(block).first(outer_elements_), state = as(outer_state_);
    const auto anchor = state.first(outer_elements_);
    algorithms::outer_step<decltype(type)>(outer_, anchor, state.last(outer_elements_), mean, learning_rate);
    if (last) std::copy(anchor.begin(), anchor.end(), mean.begin());
  });
}

void StepNumbers::take_step_apart(std::span<std::byte> model) {
  change_.resize(model.size());
  with_type(layout_.dtype, [&](auto type, const auto& as) {
    algorithms::take_step_apart<decltype(type)>(as(model), as(start_), as(change_));
  });
}

void StepNumbers::put_step_together(std::span<std::byte> result, std::int64_t summands) {
  with_type(layout_.dtype, [&](auto type, const auto& as) {
    algorithms::put_step_together<decltype(type)>(as(result), summands, as(start_), as(change_));
  });
}

}  // namespace paceline::session
