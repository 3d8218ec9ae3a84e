#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "runtime/base/clock.h"
#include "runtime/observe/trace.h"

namespace paceline::job {

/// Whether an event of a job says who came or went, or was asked to, or that it goes on in another way
/// (docs/command-line.md, Events). Who leaves a job that has ended does not count.
bool is_view_change(const nlohmann::json& event);
/// How long it took, where its event says so: since the worker's last process ended or asked for its share, or for how
/// long workers were held.
std::optional<double> seconds_of_view_change(const nlohmann::json& event);

/// A track "changes" of a run's trace, a part of its own (runtime/observe/trace.h), which is begun with the first one.
class ViewTrace {
 public:
  /// `directory`: of the run.
  explicit ViewTrace(std::string directory) : directory_(std::move(directory)) {}
  /// Any event of the job, which has just come. What stopped the writing, once.
  Result<void> on_event(const nlohmann::json& event, Instant now);

 private:
  std::string directory_;
  std::optional<observe::TraceWriter> trace_;
  bool failed_ = false;
};

}  // namespace paceline::job
