#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/base/instant.h"

namespace paceline::observe {

// Events of a trace in the Chrome trace event format, which Perfetto opens: one JSON object a line, microseconds. Pure.
// What is put together uses the line's memory again. `args_json`: "" or an object such as {"update":7}.

inline constexpr std::string_view kTraceBegin = R"({"displayTimeUnit":"ms","traceEvents":[)";
inline constexpr std::string_view kTraceEnd = "\n]}\n";  ///< Between events stands ",\n".

struct TraceTrack {
  std::int64_t process = 0;
  std::int64_t thread = 0;
};

/// `what`: process_name or thread_name.
void write_track_name(std::string& line, TraceTrack track, std::string_view what, std::string_view name);
/// Spans of one track lie one after the other, or one within the other.
void write_span(std::string& line, TraceTrack track, std::string_view category, std::string_view name, Instant begin,
                Instant end, std::string_view args_json);
/// One end of a span that may overlap others of its track; both have the same id, category and name.
void write_span_end(std::string& line, bool begins, TraceTrack track, std::string_view category, std::string_view name,
                    std::uint64_t id, Instant at, std::string_view args_json);
void write_counter(std::string& line, std::int64_t process, std::string_view name, Instant at, double value);

}  // namespace paceline::observe
