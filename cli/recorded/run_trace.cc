#include "cli/recorded/run_trace.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

#include "runtime/base/json.h"
#include "runtime/base/read_number.h"
#include "runtime/observe/read_file.h"

namespace paceline::recorded {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// Of an agent, or of a worker (thread = rank + 1); sorted with the agents last.
struct TrackId {
  bool agent;
  std::int64_t process, thread;
  auto order() const { return std::tuple(agent, agent ? process : thread, process); }
  bool operator<(const TrackId& other) const { return order() < other.order(); }
};
using Tracks = std::map<TrackId, Track>;

std::optional<Activity> activity_named(std::string_view name) {
  const auto found = std::find(kActivities.begin(), kActivities.end(), name);
  if (found == kActivities.end()) return std::nullopt;
  return static_cast<Activity>(found - kActivities.begin());
}

/// Older runs have it in the name: "compute 17".
std::int64_t update_of(const json& event) {
  if (const auto args = event.find("args"); args != event.end() && args->is_object() && args->contains("update"))
    return args->value("update", std::int64_t{-1});
  const std::string name = event.value("name", "");
  const std::string_view digits = std::string_view(name).substr(name.rfind(' ') + 1);
  return read_number<std::int64_t>(digits).value_or(-1);
}

Track& track_of(Tracks& tracks, const json& event) {
  const auto process = event.value("pid", std::int64_t{0});
  const auto thread = event.value("tid", std::int64_t{0});
  Track& track = tracks[{thread == 0, process, thread}];
  track.rank = static_cast<std::int32_t>(thread - 1);
  if (track.name.empty())
    track.name = thread == 0 ? "node " + std::to_string(process) : "worker " + std::to_string(thread - 1);
  return track;
}

void on_event(Tracks& tracks, const json& event) {
  if (event.value("ph", "") != "X") return;
  const auto activity = activity_named(event.value("cat", ""));
  if (!activity) return;
  const double begin = event.value("ts", 0.0) / 1e6;
  track_of(tracks, event).spans.push_back({begin, begin + event.value("dur", 0.0) / 1e6, *activity, update_of(event)});
}

/// One event a line, in a part as in the joined file (runtime/observe/trace.h).
Result<void> read_events(const fs::path& path, Tracks& tracks) {
  return observe::read_lines(path.string(), [&](std::string_view line, bool) {
    if (line.ends_with(',')) line.remove_suffix(1);
    const json event = parse_json(line);
    if (!event.is_object()) return;
    try {
      on_event(tracks, event);
    } catch (const json::exception&) {  // A field of another type than ours.
    }
  });
}

/// Times from the first span on.
std::optional<RunTrace> trace_of(Tracks tracks) {
  double begin = std::numeric_limits<double>::max();
  for (const auto& [id, track] : tracks)
    for (const Span& span : track.spans) begin = std::min(begin, span.begin_s);
  RunTrace trace;
  for (auto& [id, track] : tracks) {
    for (Span& span : track.spans) {
      span.begin_s -= begin;
      span.end_s -= begin;
      trace.duration_s = std::max(trace.duration_s, span.end_s);
    }
    trace.tracks.push_back(std::move(track));
  }
  if (trace.duration_s <= 0) return std::nullopt;
  return trace;
}

}  // namespace

Result<std::optional<RunTrace>> read_trace(const fs::path& directory) {
  std::vector<fs::path> files;
  std::error_code failed;
  if (fs::exists(directory / "trace.json", failed)) {
    files.push_back(directory / "trace.json");
  } else {
    for (fs::directory_iterator it(directory, failed), end; !failed && it != end; it.increment(failed))
      if (it->path().extension() == ".trace") files.push_back(it->path());
  }
  Tracks tracks;
  for (const fs::path& file : files) PACELINE_TRY(read_events(file, tracks));
  return trace_of(std::move(tracks));
}

}  // namespace paceline::recorded
