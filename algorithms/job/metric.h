#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "paceline/metric.h"

namespace paceline::job {

/// What a job's options say of its metric; an accuracy where they say nothing.
Metric metric_of(const nlohmann::json& options);
/// The job's target; nullopt: none.
std::optional<double> target_of(const nlohmann::json& options);
nlohmann::json to_json(const Metric& metric);

bool in_percent(const Metric& metric);
/// "88.1 %", "35.2", "212 points".
std::string text(const Metric& metric, double value);
bool is_better(const Metric& metric, double value, double than);
/// A value that is no number reaches nothing.
bool reaches(const Metric& metric, double value, double target);

}  // namespace paceline::job
