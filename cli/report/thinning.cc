#include "cli/report/thinning.h"

#include <algorithm>

#include "runtime/base/check.h"

namespace paceline::report {

std::vector<recorded::Point> thinned(const std::vector<recorded::Point>& points, std::size_t points_max) {
  PACELINE_CHECK(points_max >= 4, "a curve of fewer points is none");
  if (points.size() <= points_max) return points;
  const std::size_t stretches = (points_max - 2) / 2;
  const std::size_t inner = points.size() - 2;
  std::vector<recorded::Point> kept{points.front()};
  for (std::size_t k = 0; k < stretches; ++k) {
    const auto begin = points.begin() + 1 + static_cast<std::ptrdiff_t>(k * inner / stretches);
    const auto end = points.begin() + 1 + static_cast<std::ptrdiff_t>((k + 1) * inner / stretches);
    auto [low, high] = std::minmax_element(
        begin, end, [](const recorded::Point& a, const recorded::Point& b) { return a.value < b.value; });
    if (high < low) std::swap(low, high);
    kept.push_back(*low);
    if (low != high) kept.push_back(*high);
  }
  kept.push_back(points.back());
  return kept;
}

std::vector<recorded::Point> changes(const std::vector<recorded::Point>& points) {
  std::vector<recorded::Point> kept;
  for (const recorded::Point& point : points)
    if (kept.empty() || point.value != kept.back().value) kept.push_back(point);
  if (!points.empty() && kept.back().clock_s != points.back().clock_s) kept.push_back(points.back());
  return kept;
}

}  // namespace paceline::report
