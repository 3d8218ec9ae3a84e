#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/ids.h"
#include "runtime/base/instant.h"

namespace paceline::cluster {

/// Ends a worker before the machine has no memory left, or before the workers of the node have more than they may:
/// otherwise the kernel would choose, and not always a worker. Sans-I/O: it is told what there is and says when to look
/// again, the earlier the less is left.
///
/// To look at each worker costs most. It is done seldom enough to take no more than `cost` of the time, and besides
/// when the machine has so much less than the last time that it has to be.
///
/// The worker that ends is the one with most beyond what its task has asked for. Agents of one machine know nothing of
/// each other's workers: who has the largest is first, since the others wait longer; and one that has too little to
/// make a difference ends nobody.
class MemoryWatch {
 public:
  struct Options {
    NodeId node;
    std::uint64_t limit = 0;    ///< Bytes that all workers together may have; 0: what there is.
    std::uint64_t reserve = 0;  ///< Bytes of the machine that are to stay free.
    std::uint64_t filled_a_second = std::uint64_t{4} << 30;  ///< By what grows fastest.
    Duration shortest = std::chrono::milliseconds(20);       ///< Between two looks,
    Duration longest = std::chrono::seconds(2);              ///< and at most.
    double cost = 0.0001;                                    ///< Of a core, for looks at each worker.
    Duration courtesy = std::chrono::milliseconds(200);      ///< That who has nothing leaves to others.
  };
  struct Worker {
    WorkerId id;
    std::uint64_t has = 0;    ///< Bytes of its own.
    std::uint64_t asked = 0;  ///< That its task has asked for.
  };
  struct Look {
    std::uint64_t available = 0;  ///< Of the machine.
    std::vector<Worker> workers{};
    bool at_all = true;  ///< Else it is of the machine only.
    Duration took{};     ///< To go through the workers and look at each.
  };
  struct Victim {
    WorkerId worker;
    std::string why;  ///< "killed for its memory: it had 1.4 GiB ...".
  };

  explicit MemoryWatch(Options options) : options_(options) {}

  /// When to look next.
  Instant next_look() const { return next_look_; }
  /// Whether a look now is to be at each worker: always, or if the machine has less than so much.
  bool is_at_all(Instant now) const { return now >= next_at_all_; }
  std::uint64_t at_all_below() const { return at_all_below_; }
  /// Who is to end now. The look is at workers that live, but for those of which on_gone() is still to come.
  std::optional<Victim> on_look(const Look& look, Instant now);
  void on_gone(WorkerId worker);
  /// It could not be looked.
  void on_no_look(Instant now) { next_look_ = now + options_.longest; }

  /// Of those that live, at the last look, in bytes.
  std::uint64_t used() const { return used_; }
  std::uint64_t used_by(WorkerId worker) const;

 private:
  void plan(const Look& look, Instant now);
  std::optional<Victim> of_limit(const Worker& most) const;
  std::optional<Victim> of_machine(const Worker& most, std::uint64_t available, Instant now);

  Options options_;
  Instant next_look_{}, next_at_all_{};
  std::uint64_t at_all_below_ = 0;
  std::optional<WorkerId> ending_{};
  std::optional<Instant> short_since_{};  ///< Of the machine's memory.
  std::uint64_t used_ = 0;
  std::map<WorkerId, std::uint64_t> used_by_;
};

}  // namespace paceline::cluster
