#pragma once

#include <cstddef>
#include <deque>
#include <utility>

#include "runtime/base/instant.h"
#include "runtime/base/json.h"
#include "runtime/wire/codec.h"

namespace paceline::cluster {

/// Who came to a job and who went lately (algorithms/job/view_changes.h), as its nodes tell, for `paceline status`.
/// Sans I/O. Bound: the last kChangesMax.
class RecentChanges {
 public:
  static constexpr std::size_t kChangesMax = 10;

  /// Whatever this node tells of the job.
  void on_event(const wire::JobEvent::Reader& event, Instant now);
  /// The events, the oldest first, with `ago_s`.
  nlohmann::json list(Instant now) const;

  /// Two nodes' lists as one: what both tell of stands there once. What is no such list counts as empty.
  static nlohmann::json of_both(const nlohmann::json& one, const nlohmann::json& other);

 private:
  std::deque<std::pair<Instant, nlohmann::json>> changes_;
};

}  // namespace paceline::cluster
