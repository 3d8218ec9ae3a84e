#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <utility>

#include "runtime/base/instant.h"
#include "runtime/base/result.h"
#include "runtime/process/fd.h"
#include "runtime/store/mapping.h"

namespace paceline::memory {

/// How an iteration that the worker reported ended, and what it does next (the round engine's Verdict, without the
/// rank).
struct WorkerVerdict {
  std::int64_t own = -1;         ///< The iteration that it reported.
  std::int64_t next = -1;        ///< The iteration to begin now.
  std::int64_t next_round = -1;  ///< First iteration >= next that it must report.
  std::int64_t skipped = 0;      ///< Iterations jumped over.
  bool fresh = true;
  bool averaged = false;
  bool end = false;
  bool lr_may_decay = true;  ///< Else a decay of the learning rate waits.
  bool of_all = true;        ///< An average of all was among those that it has, or is late for, now.
  double scale = 1;          ///< own == next: it may step with so many times the sum of its batch, and publishes then.
  bool operator==(const WorkerVerdict&) const = default;
};

/// The page of a worker that its agent writes and the worker maps read-only: its lease, in one cache miss. A memfd; a
/// worker that scribbles over its memory cannot change it (sealed against further writable mappings).
///
///   agent:  words().abandoned.store(t); ring();
///   worker: seen = bell(); look at words(); nothing to do -> wait(seen, deadline)
///
/// Agent's side: any thread, one at a time a page. Worker's side: any number of threads, they only read.
class ControlPage {
 public:
  /// Single words, each valid on its own. The agent stores, the worker loads (acquire); `ring` orders and wakes.
  struct Words {
    std::atomic<std::uint32_t> bell{0};         ///< Futex; incremented at every change.
    std::atomic<std::uint32_t> stop{0};         ///< Not 0: end the job now.
    std::atomic<std::int64_t> abandoned{-1};    ///< Updates <= this are over: drop what is left of their mini-batches.
    std::atomic<std::int64_t> executed{-1};     ///< Last executed version.
    std::atomic<std::int64_t> hold{-1};         ///< Nobody starts an iteration > hold; -1: no hold.
    std::atomic<std::int64_t> evaluate{-1};     ///< Evaluate the averaged model of this version; -1: never asked.
    std::atomic<std::int64_t> last{INT64_MAX};  ///< No iteration after this one: the job ends earlier than planned.
    std::atomic<std::uint32_t> capture_wanted{0};  ///< Counts requests for a replica,
    std::atomic<std::int64_t> capture_from{-1};    ///< each of which is of this update or a later one.
    std::atomic<std::uint32_t> save_wanted{0};     ///< Counts requests for a checkpoint.
    std::atomic<std::uint32_t> leave{0};           ///< Not 0: leave the job after the next average.
    std::atomic<std::int64_t> next_leg{0};  ///< Not 0: where the job ends for this page it goes on in another leg.
    /// A replay: the worker publishes no further than this (scheduler/record/replay.h numbers publications).
    std::atomic<std::int64_t> may_publish{INT64_MAX};
  };

  /// Agent: allocates the page. `infeasible` when there is no memory for it.
  static Result<ControlPage> create();
  /// Worker: maps the descriptor that read_only_fd() gave. `invalid` if it is none.
  static Result<ControlPage> map(process::BorrowedFd fd);

  /// To load from on both sides; stores are the agent's (on a page that was mapped they fault).
  const Words& words() const;
  Words& words();
  std::uint32_t bell() const { return words().bell.load(std::memory_order_acquire); }

  // The agent's side (a defect, and checked, on a page that was mapped)
  // ------------------------------------------------

  /// A descriptor for the worker.
  Result<process::Fd> read_only_fd() const;
  /// Says that something changed: increments the bell and wakes all that wait.
  void ring();
  /// Writes the verdict slot (and does not ring). The number that verdict() gives with it is one higher than before.
  void set_verdict(const WorkerVerdict& verdict);

  // The worker's side -------------------------------------------------------------------------------------------------

  struct Numbered {
    std::uint64_t number = 0;
    WorkerVerdict verdict;
  };
  /// The newest verdict if its number is above `seen` (0: nothing seen); nullopt: none yet, or it is being written
  /// (wait for the bell).
  std::optional<Numbered> verdict(std::uint64_t seen) const;

  /// How long to stay awake before sleeping on the futex. Spinning pays only while every runnable thread has a core.
  struct Patience {
    int spins = 0;   ///< Looks at the bell with a pause instruction in between, some 30 ns each.
    int yields = 4;  ///< Then looks with sched_yield in between.
  };
  static Patience patience(int cores, int runnable) { return runnable <= cores ? Patience{1000, 4} : Patience{0, 4}; }

  /// Waits until the bell differs from `seen`, at most `timeout` (negative: for ever). False: it timed out. Other
  /// threads' signals do not end it. The caller looks at the words again in any case.
  bool wait(std::uint32_t seen, Duration timeout, Patience patience) const;
  bool wait(std::uint32_t seen, Duration timeout) const { return wait(seen, timeout, Patience{0, 4}); }

 private:
  struct Page;
  ControlPage(process::Fd fd, store::Mapping memory) : fd_(std::move(fd)), memory_(std::move(memory)) {}
  Page& page() const;

  process::Fd fd_;  ///< The agent's.
  store::Mapping memory_;
};

}  // namespace paceline::memory
