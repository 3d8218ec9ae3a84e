#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include "runtime/base/instant.h"
#include "runtime/base/result.h"

namespace paceline::observe {

/// Writes spans in the Chrome trace event format ("X" events, microseconds), which Perfetto opens: one file a process, joined into a
/// run's trace.json by join_traces(). A track is (process id, thread id). One thread. Buffered; flushed at close and every second.
class TraceWriter {
 public:
  static Result<TraceWriter> open(const std::string& path);
  TraceWriter(TraceWriter&&) noexcept;
  TraceWriter& operator=(TraceWriter&&) noexcept;
  ~TraceWriter();

  /// Names a track: "worker 3", "node 0".
  void name_track(std::int64_t process, std::int64_t thread, std::string_view process_name, std::string_view thread_name);
  /// `category`: compute, wait, publish, average, merge, evaluate. `args_json`: "" or an object such as {"version":7}.
  void span(std::int64_t process, std::int64_t thread, std::string_view category, std::string_view name, Instant begin, Instant end,
            std::string_view args_json = "");

 private:
  TraceWriter() = default;
  std::FILE* file_ = nullptr;
};

/// Joins the part files *.trace of `directory` into `directory`/trace.json (one JSON object) and removes the parts.
Result<void> join_traces(const std::string& directory);

}  // namespace paceline::observe
