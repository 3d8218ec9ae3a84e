#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/cluster/training/worker_share.h"
#include "runtime/base/ids.h"
#include "runtime/base/instant.h"

namespace paceline::cluster {

/// Workers of this node that have left and come back: each has another process, or will have; and those that take a
/// place which nobody had. Sans I/O.
///
///   its process ended -> (another is forked, sets up) -> shares its model -> has its window -> is admitted, loads the
///   state of another worker -> arrives: it is back
class Returns {
 public:
  /// What the next process has asked for.
  struct Share {
    WorkerId worker;
    std::uint64_t request = 0;
    SharedModel model{};
  };

  void begin(Rank rank, Instant now) { ways_.try_emplace(rank, Way{now}).first->second.share.reset(); }
  /// It was not there before.
  void note_new(Rank rank) { ways_.at(rank).is_new = true; }
  bool is_new(Rank rank) const;
  /// It does not come back, or is back. Since when it was gone; nullopt: it was not on its way.
  std::optional<Instant> end(Rank rank);
  bool has(Rank rank) const { return ways_.contains(rank); }
  /// It is one that waits for its window.
  bool has(WorkerId worker) const;
  bool empty() const { return ways_.empty(); }
  std::vector<Rank> ranks() const;

  void on_share(Rank rank, const Share& share) { ways_.at(rank).share = share; }
  /// This process has ended before it had its window.
  void withdraw(WorkerId worker);
  /// Those that wait for their windows.
  std::vector<std::pair<Rank, Share>> waiting() const;
  void on_window(Rank rank) { ways_.at(rank).share.reset(); }

 private:
  struct Way {
    Instant ended;
    std::optional<Share> share = {};
    bool is_new = false;
  };
  std::map<Rank, Way> ways_;
};

}  // namespace paceline::cluster
