#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace paceline::test {

/// What the session's user did and what it is to be asked; one a thread, emptied by `reset`.
struct SoloLog {
  struct Step {
    std::int64_t update;
    std::int32_t body;
    double loss;
    std::int64_t samples;
    double learning_rate;
  };
  std::vector<Step> steps;
  std::vector<double> evaluated;
  std::vector<std::string> captures;  ///< Replicas given, in order.
  std::map<std::string, std::vector<double>> logged;
  std::vector<std::string> warnings;
  std::string stop_reason;
  int stops = 0;  ///< How often it was asked for.
  std::string fail_reason;
  std::uint64_t elements = 0;  ///< Of the session's window.
  std::uint64_t outer_elements = 0;
  bool wide = false;  ///< Its numbers are float64.
  double slept_s = 0;
  std::int64_t started_at = -1;  ///< First update of the plan, -1: never called.
  std::int64_t planned_updates = -1;
  std::int64_t planned_evaluate_every = -1;
  std::map<std::string, std::vector<std::uint8_t>> objects;
  int objects_filled = 0;

  std::string replica;  ///< Given to whoever restores.
};

SoloLog& solo_log();
void reset_solo_log();

}  // namespace paceline::test
