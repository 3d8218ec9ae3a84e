#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"

namespace paceline::recorded {

/// What a worker, or an agent's averaging, does during a span of the trace.
enum class Activity { compute, abandoned, evaluate, wait, hold, average, merge };
/// As the trace calls them, in the order of the enumeration.
inline constexpr std::array<std::string_view, 7> kActivities = {"compute", "abandoned", "evaluate", "wait",
                                                                "hold",    "average",   "merge"};

struct Span {
  double begin_s;  ///< Since the first span of the run, evaluations included.
  double end_s;
  Activity activity;
  std::int64_t update = -1;  ///< Whose; -1: the trace does not say.
};

struct Track {
  std::string name;  ///< "worker 3", "node 0".
  std::vector<Span> spans;
  std::int32_t rank = -1;  ///< Of a worker; -1: an agent.
};

/// Workers by rank, then agents by node.
struct RunTrace {
  std::vector<Track> tracks;
  double duration_s = 0;
};

/// Reads trace.json or, of a run that has not ended, the parts that its processes write; nullopt where there is no
/// span. Lines that are no event are passed over. Fails if a file cannot be read.
Result<std::optional<RunTrace>> read_trace(const std::filesystem::path& directory);

}  // namespace paceline::recorded
