#include "algorithms/groups.h"

#include <algorithm>
#include <bit>

#include "runtime/base/check.h"

namespace paceline::algorithms {
namespace {

std::int32_t log2_exact(std::int32_t n) { return std::countr_zero(static_cast<std::uint32_t>(n)); }

}  // namespace

bool is_power_of_two(std::int64_t n) { return n > 0 && std::has_single_bit(static_cast<std::uint64_t>(n)); }

std::int32_t default_group_size(std::int32_t workers) {
  PACELINE_CHECK(is_power_of_two(workers), "butterfly groups need a power of two workers");
  return std::int32_t{1} << ((log2_exact(workers) + 1) / 2);
}

std::vector<std::int32_t> butterfly_masks(std::int32_t workers, std::int32_t group_size, Version t) {
  PACELINE_CHECK(workers >= 1 && group_size >= 1 && group_size <= workers, "the group size lies in 1..P");
  if (group_size == 1) return {};
  PACELINE_CHECK(is_power_of_two(workers) && is_power_of_two(group_size), "butterfly groups need powers of two");
  PACELINE_CHECK(t.value >= 0, "iterations count from 0");
  const std::int64_t dimensions = log2_exact(workers);
  const std::int64_t phases = log2_exact(group_size);
  std::int64_t shift = (t.value % dimensions) * phases % dimensions;
  std::vector<std::int32_t> masks;
  for (std::int64_t r = 0; r < phases; ++r) {
    masks.push_back(std::int32_t{1} << shift);
    shift = (shift + 1) % dimensions;
  }
  return masks;
}

std::vector<Rank> butterfly_group_of(std::int32_t workers, std::int32_t group_size, Version t, Rank rank) {
  PACELINE_CHECK(rank.value >= 0 && rank.value < workers, "ranks lie in 0..P-1");
  std::vector<Rank> group{rank};
  for (const std::int32_t mask : butterfly_masks(workers, group_size, t)) {
    const std::size_t before = group.size();
    for (std::size_t k = 0; k < before; ++k) group.push_back(Rank(group[k].value ^ mask));
  }
  std::sort(group.begin(), group.end());
  return group;
}

std::vector<std::vector<Rank>> butterfly_groups(std::int32_t workers, std::int32_t group_size, Version t) {
  std::vector<std::vector<Rank>> groups;
  for (Rank rank(0); rank.value < workers; rank = rank.next()) {
    auto group = butterfly_group_of(workers, group_size, t, rank);
    if (group.front() == rank) groups.push_back(std::move(group));
  }
  return groups;
}

std::int32_t default_strided_size(std::int32_t workers) {
  std::int32_t size = 1;
  while (workers % size != 0 || static_cast<std::int64_t>(size) * size < workers) ++size;
  return size;
}

std::vector<std::vector<Rank>> strided_groups(std::int32_t workers, std::int32_t group_size, Version t) {
  PACELINE_CHECK(workers >= 1 && group_size >= 1 && workers % group_size == 0, "the group size divides P");
  PACELINE_CHECK(t.value >= 0, "iterations count from 0");
  const std::int32_t count = workers / group_size;
  const bool blocks = t.value % 2 == 0;
  std::vector<std::vector<Rank>> groups(static_cast<std::size_t>(count));
  for (Rank rank(0); rank.value < workers; rank = rank.next())
    groups[static_cast<std::size_t>(blocks ? rank.value / group_size : rank.value % count)].push_back(rank);
  return groups;
}

}  // namespace paceline::algorithms
