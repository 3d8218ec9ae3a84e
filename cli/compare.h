#pragma once

#include <string>
#include <vector>

#include "runtime/base/json.h"

namespace paceline::cli {

/// How one strategy of a comparison did.
struct Compared {
  std::string strategy;   ///< As the user named it.
  nlohmann::json result;  ///< Its `result` event; null: the run failed.
};

/// The table of `--compare`, one row a strategy.
std::string comparison_table(const std::vector<Compared>& runs);

/// What happened, in one line: every strategy against the first, whichever of them won.
std::string comparison_in_words(const std::vector<Compared>& runs);

}  // namespace paceline::cli
