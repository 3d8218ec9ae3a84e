#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "algorithms/job/metric.h"

namespace paceline::cluster {

/// What the values of a job's evaluations lead to: which is the best one, and whether the job ends. Sans I/O.
class Evaluations {
 public:
  struct Options {
    Metric metric{};
    std::optional<double> target{};
    std::int64_t early_stopping = 0;  ///< Ends the job when so many in a row were no better than the best; 0: never.
  };
  struct Outcome {
    bool is_best = false;  ///< So far; the first of equals.
    bool reached = false;  ///< The target.
    std::string stop{};    ///< Why the job is to end; empty: it goes on.
  };

  explicit Evaluations(Options options) : options_(std::move(options)) {}

  /// `update`: updates done, more than before. NaN: the script has no metric, or it gave none; it counts as no better.
  Outcome on_value(std::int64_t update, double value);

 private:
  struct Best {
    std::int64_t update;
    double value;
  };
  Options options_;
  std::optional<Best> best_;
  std::int64_t no_better_ = 0;
};

}  // namespace paceline::cluster
