#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "scheduler/shell/workplace.h"

namespace paceline::scheduler {

/// Averagings for a worker that may be gone when its turn comes: then nothing is reduced, and nothing follows. Their
/// ends are recorded, as of this worker.
class WorkerAveragings {
 public:
  using Member = WorkerWindows::Member;
  using Prepare = std::function<collective::Reduction(Member&)>;

  explicit WorkerAveragings(Workplace& work) : work_(work) {}

  void add(Rank rank, Prepare prepare, std::function<void(Member&, Instant)> finish) {
    add(rank,
        {for_living(rank, std::move(prepare)),
         [this, rank, finish = std::move(finish)](Instant now) {
           if (Member* const member = work_.windows.living(rank)) finish(*member, now);
         }},
        {rank});
  }
  /// For several workers.
  void add(Rank rank, Averagings::Averaging averaging, const std::vector<Rank>& contributors) {
    const Decision done{.kind = Decision::Kind::averaged, .rank = rank};
    averaging.told = done;
    averaging.finish = [this, done, finish = std::move(averaging.finish)](Instant now) {
      work_.chronicle.decide(done);
      finish(now);
    };
    work_.averagings.add(std::move(averaging), contributors);
  }
  /// Where nothing follows but the next one: its end is not recorded.
  void add_sum(Rank rank, Prepare prepare) {
    work_.averagings.add({for_living(rank, std::move(prepare)), [](Instant) {}}, {rank});
  }

 private:
  std::function<collective::Reduction()> for_living(Rank rank, Prepare prepare) {
    return [this, rank, prepare = std::move(prepare)] {
      Member* const member = work_.windows.living(rank);
      return member ? prepare(*member) : work_.windows.reduction();
    };
  }

  Workplace& work_;
};

}  // namespace paceline::scheduler
