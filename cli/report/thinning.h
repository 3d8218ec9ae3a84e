#pragma once

#include <vector>

#include "cli/recorded/run_history.h"

namespace paceline::report {

/// At most about `points_max` of the points (>= 4): of each stretch the lowest and the highest, so that no spike is
/// lost, and the first and the last of all. All of them if they are no more.
std::vector<recorded::Point> thinned(const std::vector<recorded::Point>& points, std::size_t points_max);

/// The points at which the value is another than before, and the last.
std::vector<recorded::Point> changes(const std::vector<recorded::Point>& points);

}  // namespace paceline::report
