#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/result.h"

namespace paceline::cli {

/// What `paceline list` can list, out of the head's answer to `status` (algorithms/cluster/head.h). Pure.
enum class Listed { nodes, workers, tasks, jobs, actors };

/// `invalid`: there is no such list.
Result<Listed> listed_by(const std::string& name);
std::string name_of(Listed listed);
/// What the head is to be asked.
nlohmann::json question_for(Listed listed);

struct ListFilter {
  std::optional<std::int64_t> node{};
  std::string owner{};  ///< Or "detached", of actors; the driver on whose behalf counts, too. "driver/4711" will do.
  std::string state{};
};
using ListRows = std::vector<nlohmann::json>;
/// `invalid`: such rows have nothing of the kind, or not this one; says which there are. `not_found`: no such owner.
Result<ListRows> rows_of(Listed listed, const nlohmann::json& status, const ListFilter& filter);

/// What the head cannot do, in a line; empty: there is nothing.
std::string problem_text(const nlohmann::json& status);
/// A table, and an object a line.
std::string rows_text(Listed listed, const ListRows& rows);
std::string rows_json(const ListRows& rows);
/// Nodes that have not answered, or are not there, of which rows may be missing.
std::vector<std::string> silent_nodes(Listed listed, const nlohmann::json& status, const ListFilter& filter);

}  // namespace paceline::cli
