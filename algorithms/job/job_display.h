#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "actors/driver_output.h"
#include "algorithms/job/job_record.h"
#include "runtime/base/instant.h"

namespace paceline::job {

/// What the driver shows of its job: a live block on a terminal, else a line every few seconds; with {"json": true}
/// events as JSON lines on standard output and nothing else. Between them, or then on stderr, what workers print: while
/// a display lives it takes the driver's `output`. One thread.
class JobDisplay {
 public:
  JobDisplay(const Options& options, actors::DriverOutput& output);
  ~JobDisplay();

  void on_event(const nlohmann::json& event);
  /// Also what workers have printed.
  void show(const JobRecord& record, Instant now, bool last);
  /// What workers have printed so far, on all nodes; what has not come within `patience` is shown later, on stderr.
  void show_all_output(Duration patience);
  void warn(const std::string& text);
  void conclude(const JobRecord& record, const nlohmann::json& result, bool interrupted, const std::string& checkpoint,
                const std::string& run_directory);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace paceline::job
