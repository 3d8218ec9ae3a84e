#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>

#include "cli/recorded/run_trace.h"

namespace paceline::report {

/// How much of a trace a page shows.
struct TimelineLimits {
  std::size_t slices = 200;      ///< Of the whole run.
  std::size_t spans_max = 2000;  ///< In an excerpt.
};

/// What is drawn of a trace, of any length:
///   tracks    names, workers first
///   totals    a track each: {activity: seconds}
///   shares    a track each: {activity: percent of each slice of the run}
///   excerpts  some updates, exactly: {name, begin_s, end_s, spans: [[track, activity, begin_s, end_s], ...]};
///             one excerpt of all if it is that short, else one of the beginning, the middle and the end
nlohmann::json timeline(const recorded::RunTrace& trace, const TimelineLimits& limits);

}  // namespace paceline::report
