#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/collective/kernels.h"
#include "runtime/memory/window.h"

namespace paceline::collective {

/// One averaging in this host's memory: every output gets (weighted sum of the inputs) * its own scale. Punctual
/// members get the mean (scale 1/S), late ones the sum (scale 1). All have `elements` elements; an output may alias an
/// input exactly (in place).
struct Reduction {
  std::vector<const void*> inputs;
  std::vector<double> weights = {};  ///< One an input; empty: all are 1.
  std::vector<Output> outputs;
  std::uint64_t elements = 0;
  memory::Dtype dtype = memory::Dtype::f32;
  /// Called once for each of the ranges of elements into which the reduction falls, concurrently: outputs[0] holds the
  /// result there, and what it makes of that the other outputs get, too (of their scales only the first one's counts).
  std::function<void(std::uint64_t begin, std::uint64_t end)> then = {};
};

/// The agent's averaging threads: carries out reductions in the order of their submission, each split into chunks that
/// the threads claim from a shared counter, so that a disturbed core takes fewer of them. A result never depends on who
/// claimed what.
///
///   submit -> queued -> (all before it are done) -> running, chunk by chunk -> completed, descriptor() readable
///
/// Steps and bytes of a reduction of K inputs into M outputs of n bytes: one pass; K n read, M n written (outputs in
/// place or streamed past the caches; else another M n read for ownership).
///
/// Owned by one thread, which calls everything; the pool's threads sleep on a condition variable while there is nothing
/// to do. The pool shares in the ownership of a reduction's memory, so that none is unmapped under it. Bound: kQueueMax
/// reductions submitted and not yet taken from completed().
class Averager {
 public:
  using Id = std::uint64_t;  ///< The caller's; need not be unique.

  /// Below this many bytes (of one input) waking threads costs more than the work: use run_inline.
  static constexpr std::uint64_t kInlineBytes = 128 << 10;
  static constexpr std::uint64_t kChunkBytes = 256 << 10;
  static constexpr std::size_t kQueueMax = 4096;

  /// `threads` 0: as many as the process may use cores, at most 4. `internal` if a thread or the eventfd cannot be had.
  static Result<std::unique_ptr<Averager>> create(int threads = 0);
  /// Finishes what is running, drops what is queued.
  ~Averager();
  Averager(const Averager&) = delete;
  Averager& operator=(const Averager&) = delete;

  /// Starts it soon, on the pool. `memory` owns all that the reduction's pointers point to, and what its `then` uses;
  /// it is let go by the thread that takes the id from completed(), or destroys the pool. `invalid`: a null pointer or
  /// no outputs; `overloaded`: the bound is reached.
  Result<void> submit(Id id, Reduction reduction, std::shared_ptr<const void> memory);
  /// Carries it out now, on the caller's thread, past the queue.
  static void run_inline(const Reduction& reduction);
  static bool is_small(const Reduction& reduction);

  /// An eventfd, readable when completed() has something; completed() makes it unreadable.
  int descriptor() const;
  /// Ids of what was done since the last call, in order of submission. Their outputs are visible to the caller.
  std::vector<Id> completed();

  int threads() const;

 private:
  struct State;
  explicit Averager(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace paceline::collective
