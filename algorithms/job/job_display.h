#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "algorithms/job/job_record.h"
#include "runtime/base/instant.h"

namespace paceline::job {

/// What the driver shows of its job: a live block on a terminal, else a line every few seconds; with {"json": true}
/// events as JSON lines on standard output and nothing else.
class JobDisplay {
 public:
  /// `placed`: the head's answer to submit.
  JobDisplay(const nlohmann::json& options, const nlohmann::json& placed);
  ~JobDisplay();

  void on_event(const nlohmann::json& event);
  void show(const JobRecord& record, Instant now, bool last);
  void warn(const std::string& text);
  void conclude(const JobRecord& record, const nlohmann::json& result, bool interrupted, const std::string& checkpoint,
                const std::string& run_directory);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace paceline::job
