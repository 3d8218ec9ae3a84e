#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "runtime/base/ids.h"
#include "runtime/base/json.h"

namespace paceline::cluster {

/// The newest value of each name that a job's workers log (`Worker::log`), for `paceline status`. Sans I/O. Bound:
/// kNamesMax names; of further ones nothing is kept.
class LoggedValues {
 public:
  static constexpr std::size_t kNamesMax = 1000;

  /// `update`: updates done.
  void on_value(const std::string& name, Rank worker, std::int64_t update, double clock_s, double value);
  /// A list, by name: `name`, `worker`, `update`, `clock_s`, `value`.
  nlohmann::json list() const;

  /// Two nodes' lists as one. What is no such list counts as empty.
  static nlohmann::json newest_of(const nlohmann::json& one, const nlohmann::json& other);

 private:
  std::map<std::string, nlohmann::json> newest_;
};

}  // namespace paceline::cluster
