#pragma once

#include <string>

namespace paceline {

/// Which of two values of a metric is the better one.
enum class Direction { maximise, minimise };
inline constexpr Direction maximise = Direction::maximise;
inline constexpr Direction minimise = Direction::minimise;

/// What the values of a job's evaluations are: `.metric = {"perplexity", paceline::minimise}`. Values of "accuracy",
/// and those in "%", are fractions, which are shown as percentages; others are shown as they are, before their unit.
struct Metric {
  std::string name = "accuracy";
  Direction direction = Direction::maximise;
  std::string unit{};

  bool operator==(const Metric&) const = default;
};

}  // namespace paceline
