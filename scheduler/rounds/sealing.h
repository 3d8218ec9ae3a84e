#pragma once

#include <cstdint>

#include "scheduler/rounds/partial_sums.h"
#include "scheduler/rounds/round_engine.h"

namespace paceline::scheduler {

/// Takes what the members of a group have published for a round, and says what of it counts.
class Sealing {
 public:
  /// `abandons`: at the rounds of the plan what is left of batches is dropped.
  Sealing(Workplace& work, const Weighing& weighing, bool abandons)
      : work_(work), weighing_(weighing), abandons_(abandons) {}

  /// Pins it, adds what counts to the group, and notes in `sealed` what was found. `done`: the last version that is.
  void seal(const RoundEngine::Seal& what, const Round& round, Version done, PartialSums::Group& group,
            Decision& sealed);
  /// A job of one worker, which tells only how far it is (Session::go_on_alone): that is in every round, and the
  /// average is what it has.
  bool is_alone() const { return work_.job.node_of.size() == 1 && !weighing_.by_samples; }

 private:
  bool counts(const memory::BufferTag& tag, Version v, const Round& round, Version done) const;
  void add_contribution(PartialSums::Group& group, const PartialSums::Contribution& from, const memory::BufferTag& tag,
                        Version v);
  std::int64_t newly_computed();
  void check_learning_rates(const PartialSums::Group& group, Version v);

  Workplace& work_;
  const Weighing& weighing_;
  const bool abandons_;
  std::int64_t counted_samples_ = 0;
};

}  // namespace paceline::scheduler
