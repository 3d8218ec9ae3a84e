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

  struct Gone {
    Instant since;
    std::optional<std::int64_t> at =
        {};  ///< The update that its last process was at; nullopt: it was not there before.
    bool operator==(const Gone&) const = default;
  };
  /// One that ends again on its way is gone as it was.
  void begin(Rank rank, const Gone& gone) { ways_.try_emplace(rank, Way{gone}).first->second.share.reset(); }
  /// It does not come back, or is back. nullopt: it was not on its way.
  std::optional<Gone> end(Rank rank);
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
    Gone gone;
    std::optional<Share> share = {};
  };
  std::map<Rank, Way> ways_;
};

}  // namespace paceline::cluster
