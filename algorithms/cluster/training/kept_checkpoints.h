#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "runtime/base/ids.h"
#include "runtime/base/result.h"
#include "runtime/observe/run_directory.h"

namespace paceline::cluster {

/// Keeps what each evaluation wrote as the run's checkpoint, which the next one replaces: the best one so far, and
/// copies of the last ones; and lets those that are written between evaluations take their place. Copies are further
/// names of the same file (hard links), so that nothing is copied, and each appears as a whole or not at all.
class KeptCheckpoints {
 public:
  /// `run_directory` empty: there are no checkpoints. `count`: of the last ones, the newest included; at most 1: only
  /// the run's own.
  KeptCheckpoints(const std::string& run_directory, std::int64_t count)
      : run_(observe::RunDirectory::at(run_directory)), count_(count) {}

  /// The evaluation after so many updates has written its checkpoint, and the next one is not asked for yet.
  Result<void> keep(std::int64_t update, bool is_best);
  /// Another node has kept what that evaluation wrote.
  void note_kept(std::int64_t update);
  /// `writer` has written a fresh checkpoint after so many updates, and no evaluation is under way: it becomes the
  /// run's, unless that one is as new. Whether it did.
  Result<bool> take_fresh(Rank writer, std::int64_t update);
  void drop_fresh(Rank writer);

 private:
  std::string name_of(std::int64_t update) const;

  observe::RunDirectory run_;
  std::int64_t count_;
  std::int64_t newest_ = -1;
  std::deque<std::string> kept_;
};

}  // namespace paceline::cluster
