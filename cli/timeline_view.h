#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "cli/running.h"

namespace paceline::cli {

struct TimelineFigures {
  std::size_t spans = 0;
  std::size_t workers = 0;   ///< That have any.
  std::uint64_t lost = 0;    ///< Older calls, which workers do not keep.
  std::size_t left_out = 0;  ///< Workers that agents had no room for.
};

/// A trace (runtime/observe/trace_event.h) of what the head answers to `status` with `spans`, an event at a time: a
/// process a node, a track a worker's thread, a span a call. Times begin with the first. Pure, if `name_of` is.
TimelineFigures write_timeline(const nlohmann::json& status, const NameOf& name_of,
                               const std::function<void(std::string_view event)>& write);

/// "timeline.json: 12 calls of 3 workers; open it in https://ui.perfetto.dev".
std::string timeline_text(const std::string& file, const TimelineFigures& figures);
nlohmann::json timeline_json(const std::string& file, const TimelineFigures& figures);

}  // namespace paceline::cli
