#include "scheduler/rounds/outer_model.h"

#include <algorithm>

namespace paceline::scheduler {

void OuterModel::begin(std::span<const std::byte> start, memory::Dtype dtype) {
  dtype_ = dtype;
  model_.assign(start.begin(), start.end());
  momentum_.assign(start.size(), std::byte{0});
  mean_.resize(start.size());
}

void OuterModel::carry_on(collective::Reduction& reduction, double scale) {
  reduction.outputs.insert(reduction.outputs.begin(), {mean_.data(), scale});
  reduction.then = [this](std::uint64_t begin, std::uint64_t end) { carry_on(begin, end); };
}

void OuterModel::carry_on(std::uint64_t begin, std::uint64_t end) {
  const std::uint64_t width = memory::size_of(dtype_), behind = std::clamp(elements_, begin, end);
  const auto part = [&](std::vector<std::byte>& of, std::uint64_t from, std::uint64_t to) {
    return std::span(of).subspan(from * width, (to - from) * width);
  };
  if (begin < behind)
    step_(dtype_, part(model_, begin, behind), part(momentum_, begin, behind), part(mean_, begin, behind));
  const auto rest = part(mean_, behind, end);
  std::copy(rest.begin(), rest.end(), part(model_, behind, end).begin());
}

}  // namespace paceline::scheduler
