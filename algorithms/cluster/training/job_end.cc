#include "algorithms/cluster/training/job_end.h"

#include <algorithm>

namespace paceline::cluster {

void JobEnd::begin(Version v, Instant now) {
  if (version_) return;
  version_ = v;
  since_ = now;
}

void JobEnd::wait_from(Instant now) { since_ = now; }

JobEnd::Step JobEnd::next(Here here, Patience patience, Instant now) {
  if (!is_settling()) return Step::none;
  const bool late = now - since_ >= patience.here;
  if (!here.all_there && !left_behind_ && late) {
    left_behind_ = true;
    return Step::leave_behind;
  }
  if ((here.all_there || left_behind_) && settled_.insert(self_).second && !here.leads) return Step::tell_settled;
  if (!here.leads || here.evaluating) return Step::none;
  // A node that says nothing gets the time to leave its own workers behind first.
  const bool all_nodes = std::includes(settled_.begin(), settled_.end(), nodes_.begin(), nodes_.end());
  return all_nodes || now - since_ >= 2 * patience.most ? Step::release : Step::none;
}

}  // namespace paceline::cluster
