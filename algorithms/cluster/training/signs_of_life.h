#pragma once

#include <map>
#include <set>
#include <vector>

#include "runtime/base/ids.h"
#include "runtime/base/instant.h"

namespace paceline::cluster {

/// Which of a job's workers on this node have shown that they are there, and which are to be asked. One that computes
/// for long says nothing, but its I/O thread answers; one that is stopped, swapped out or gone does not. Sans I/O.
class SignsOfLife {
 public:
  static constexpr Duration kAskAfter = std::chrono::seconds(1);
  static constexpr Duration kAnswerWithin = std::chrono::seconds(1);
  /// A pause between two looks that is no delay any more: this process itself stood still, and could hear nobody.
  static constexpr Duration kAway = std::chrono::seconds(2);

  /// It has shared its model. Of others nothing is heard.
  void join(Rank rank, Instant now) { last_[rank] = now; }
  /// It has arrived.
  void heard(Rank rank, Instant now);
  void answered(Rank rank, Instant now);
  void leave(Rank rank) { last_.erase(rank); }
  /// Whether it was heard lately enough to have answered whatever it was asked.
  bool is_alive(Rank rank, Instant now) const;

  struct Look {
    std::vector<Rank> ask;  ///< Those without a sign for kAskAfter, unless an answer is still due.
    /// Their silence is this process's own: it begins anew.
    std::vector<Rank> unheard;
  };
  /// Call it several times within kAskAfter.
  Look look(Instant now);

 private:
  std::map<Rank, Instant> last_;  // Sign of who has joined.
  std::set<Rank> asked_;          // That have not answered.
  Instant looked_{};
};

}  // namespace paceline::cluster
