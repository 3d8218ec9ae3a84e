#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/base/instant.h"
#include "runtime/base/result.h"

namespace paceline::observe {

/// Writes spans and counters in the Chrome trace event format ("X" and "C" events, microseconds), which Perfetto opens:
/// one part file a process (name it *.trace), joined into a run's trace.json by join_traces(). A track is (process id,
/// thread id). Owned by one thread; buffered, flushed at close, by flush(), and by span() and counter() when the last
/// flush is a second ago (by their own time). A full disk stops the writing, never the program: see error().
class TraceWriter {
 public:
  static Result<TraceWriter> open(const std::string& path);
  TraceWriter(TraceWriter&&) noexcept;
  TraceWriter& operator=(TraceWriter&&) noexcept;
  ~TraceWriter();

  /// Names a track: "worker 3", "node 0".
  void name_track(std::int64_t process, std::int64_t thread, std::string_view process_name,
                  std::string_view thread_name);
  /// `category`: compute, abandoned, wait, hold, publish, evaluate; of the agent: average, merge. It is the name, too,
  /// so that Perfetto adds up what is of one kind; which one it is stands in `args_json`: "" or an object such as
  /// {"update":7}.
  void span(std::int64_t process, std::int64_t thread, std::string_view category, Instant begin, Instant end,
            std::string_view args_json = "");
  /// A figure of a process as it is from now on. One that is not finite is left out.
  void counter(std::int64_t process, std::string_view name, Instant at, double value);
  void flush();
  /// What stopped the writing, once; success afterwards and while all is well.
  Result<void> error();

 private:
  class File;
  explicit TraceWriter(std::unique_ptr<File> file);
  std::unique_ptr<File> file_;
};

/// Joins the part files *.trace of `directory` into `directory`/trace.json (one JSON object, written atomically) and
/// removes the parts. A last line that a killed process left unfinished is dropped, and so is any line that is no JSON
/// object. No part: trace.json holds no events.
Result<void> join_traces(const std::string& directory);

}  // namespace paceline::observe
