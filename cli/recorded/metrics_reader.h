#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/job/job_record.h"
#include "cli/recorded/run_history.h"
#include "runtime/base/json.h"

namespace paceline::recorded {

/// Makes the curves of a run from the lines of its metrics.jsonl. Pure: lines in, figures out. Lines that are no event
/// are counted. Where several runs wrote into one file, the last one counts.
class MetricsReader {
 public:
  explicit MetricsReader(nlohmann::json options);

  /// `whole`: its '\n' was there. One without may be half written, which is no defect.
  void on_line(std::string_view line, bool whole);
  /// Moves what was read into `history`.
  void finish(RunHistory& history);

  const job::JobRecord& record() const { return record_; }
  bool has_figures() const { return !loss_.empty() || !evaluations_.empty() || ended_; }

 private:
  void on_event(const nlohmann::json& event);
  void on_progress(const nlohmann::json& event);
  void on_logged(const nlohmann::json& event);
  void begin();
  double samples_at(double clock_s) const;

  nlohmann::json options_;
  job::JobRecord record_;
  std::vector<Point> loss_, evaluations_, period_;
  struct Logged {
    std::vector<Point> points;
    std::int64_t update = 0;  ///< Of the last one.
  };
  std::map<std::string, Logged> logged_;
  std::vector<Point> samples_;                                   // Value unused: how many at which time.
  std::map<std::int32_t, std::vector<std::int64_t>> staleness_;  // By node.
  std::vector<ViewChange> views_;
  std::map<std::int32_t, std::string> left_;  // By rank: how.
  std::int64_t first_update_ = 0;
  std::int64_t last_update_ = -1;
  std::size_t unreadable_ = 0;
  std::size_t runs_ = 1;
  bool ended_ = false;
};

}  // namespace paceline::recorded
