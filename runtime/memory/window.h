#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "runtime/base/ids.h"
#include "runtime/base/result.h"
#include "runtime/process/fd.h"
#include "runtime/store/mapping.h"

namespace paceline::memory {

/// Type of a window's elements. Sums are made in f32 (f64 for f64).
enum class Dtype : std::uint8_t { f32, f64, bf16, f16 };
std::size_t size_of(Dtype dtype);

/// What a worker writes beside the numbers of a buffer before it publishes it; immutable until the buffer is free
/// again.
struct BufferTag {
  std::int64_t iteration = -1;  ///< The iteration (update) that the contents belong to; -1: the start.
  std::int32_t bodies = 0;      ///< Mini-batches that went into it.
  std::int64_t since = 0;       ///< Mini-batches [since, through) of the worker's are done, and are in it with all
  std::int64_t through = 0;     ///< that it had in hand (scheduler/ledger.h).
  std::int32_t divisor = 1;  ///< Results only: the number of contributions summed up; contents / divisor is the mean.
  std::int32_t members = 0;  ///< Results of an average of all only: workers that have a part in it, whatever they gave.
  double loss_sum = 0;       ///< Sum of the losses of `loss_count` mini-batches.
  std::int64_t loss_count = 0;
  std::int64_t samples = 0;
  double learning_rate = 0;
};

/// Index of a buffer in its window.
using Buffer = std::int32_t;

/// A worker's region of shared memory that outlives the worker: N equal buffers, each in at most one of five roles.
///
///             publish                seal              keep / recycle
///   writing ----------> published ----------> sealed ------------------> free
///      ^  ^                 (a newer publication frees an unsealed older one)
///      |  |    deliver
///      |  +--------------- in_progress <--- begin_result --- free
///      |                        | retain
///      +------- adopt -------- latest  (a newer one frees it)
///
/// What is published and not sealed yet the worker can take back (withdraw).
///
/// All five roles live in one 64-bit word of shared memory and every transition is one compare-and-swap, so that a
/// worker that is stopped or killed between any two instructions leaves the window whole. A buffer that is being
/// written has never been published: nobody reads a torn one.
///
/// Created by the agent as a memfd (`fallocate`d: a shortage is an error here, never a SIGBUS later), mapped by the
/// worker from the descriptor. The worker's process can scribble over all of it: the agent takes no roles that are not
/// valid (its calls then answer nullopt or do nothing), and copies a tag before it checks and uses it. Worker's side:
/// one thread. Agent's side: any thread, one at a time a window.
class Window {
 public:
  struct Layout {
    std::uint64_t elements = 0;  ///< Elements of one buffer.
    Dtype dtype = Dtype::f32;
    std::int32_t buffers = 1;  ///< 1..14.
    bool operator==(const Layout&) const = default;
  };
  /// Bytes of shared memory that a window of this layout takes, header and padding included.
  static std::uint64_t bytes_needed(const Layout& layout);

  /// Agent: allocates and zeroes. `infeasible` names what is needed and what is there (MemAvailable, cgroup limit).
  static Result<Window> create(const Layout& layout);
  /// Worker: maps the descriptor. `invalid` if it is no window of `layout`.
  static Result<Window> map(process::Fd fd, const Layout& layout);

  process::BorrowedFd fd() const { return fd_; }
  const Layout& layout() const { return layout_; }
  /// Contents of a buffer, 4096-byte aligned, `elements * size_of(dtype)` bytes.
  std::span<std::byte> data(Buffer buffer) const;
  BufferTag& tag(Buffer buffer) const;

  // The worker's side -------------------------------------------------------------------------------------------------

  /// The buffer that the worker may write; nullopt while it has none (published, and waiting for a result).
  std::optional<Buffer> writing() const;
  /// Hands `writing` over: it becomes `published`, an unsealed older publication becomes free. With `go_on` the worker
  /// gets another free buffer at once. False, and nothing happened: there is no `writing`, or none was free (the
  /// caller's layout has too few buffers).
  bool publish(bool go_on);
  /// The newest retained result becomes `writing` (an old `writing` is freed); nullopt if there is none.
  std::optional<Buffer> adopt();
  /// What is published and was not sealed becomes `writing` again (an old `writing` is freed); nullopt: there is none.
  std::optional<Buffer> withdraw();

  // The agent's side --------------------------------------------------------------------------------------------------

  /// As it was created, but for its contents and its worker's progress, which counts on: for the next process of a
  /// worker that has ended.
  void reset();
  std::optional<Buffer> published() const;
  std::optional<Buffer> sealed() const;
  std::optional<Buffer> latest() const;
  /// Pins what is published now: it stays as it is until `unseal`, whatever the worker publishes. nullopt: nothing is
  /// published, or an earlier seal still holds. Only what is sealed may be read: a published buffer can become free at
  /// any time.
  std::optional<Buffer> seal();
  /// Ends the seal. keep: the buffer stays published if nothing newer is; else it is freed (`recycle`).
  enum class Unseal { keep, recycle };
  void unseal(Unseal how);
  /// A free buffer for a result; nullopt: none (the layout has too few), or a result is in progress already.
  std::optional<Buffer> begin_result();
  /// In place: the sealed buffer itself becomes the result (all members are blocked until the round ends).
  std::optional<Buffer> begin_result_in_place();
  /// The result goes to the waiting worker: `in_progress` becomes `writing` (an old `writing` is freed).
  void deliver();
  /// The result waits for a late worker: `in_progress` becomes `latest`, the old one is freed.
  void retain();

  /// Worker's view of its own progress, relaxed atomics, read by the agent for `status`.
  struct Progress {
    std::atomic<std::int64_t> step;
    std::atomic<std::int64_t> samples;
    std::atomic<std::uint32_t> state;   ///< Of session::State.
    std::atomic<std::uint32_t> bodies;  ///< Mini-batches of `step` that are done, where others may end its batch.
    std::atomic<std::int64_t> compute_ns;
    std::atomic<std::int64_t> wait_ns;
  };
  Progress& progress() const;

 private:
  struct Header;
  Window(process::Fd fd, store::Mapping memory, const Layout& layout)
      : fd_(std::move(fd)), memory_(std::move(memory)), layout_(layout) {}
  Header* header() const;

  process::Fd fd_;
  store::Mapping memory_;
  Layout layout_;
};

}  // namespace paceline::memory
