#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/base/instant.h"

namespace paceline::channel {

/// How one side of a ring sleeps. It says so in shared memory before it does, and whoever has news for it wakes it that
/// way; who says nothing is not woken, and no system call is made.
enum class Sleep : std::uint32_t {
  awake,
  on_futex,  ///< A thread waits on the very word.
  on_bell,   ///< An event loop waits for the side's eventfd.
};

/// What both sides of a ring share, besides its bytes. The other side may be hostile, or dead in mid-write: nothing
/// read from here is believed before it was checked.
struct RingHeader {
  alignas(64) std::atomic<std::uint64_t> tail{0};  ///< Bytes written so far. The writer's.
  alignas(64) std::atomic<std::uint64_t> head{0};  ///< Bytes read so far, as the writer has to know. The reader's.
  std::atomic<std::uint64_t> taken{0};             ///< Whole messages read so far, exactly. The reader's.
  alignas(64) std::atomic<std::uint32_t> reader_sleeps{0};  ///< A Sleep.
  alignas(64) std::atomic<std::uint32_t> writer_sleeps{0};
};

/// A ring's memory. The bytes are mapped twice, one behind the other, so that whatever lies across the end is
/// contiguous: 2 * capacity bytes can be read from `bytes`. The capacity is a power of two and a multiple of the page.
struct RingMemory {
  RingHeader* header = nullptr;
  std::byte* bytes = nullptr;
  std::uint64_t capacity = 0;
};

/// What stands before each fragment. A frame is one fragment or several, a message one frame or several.
struct FragmentHeader {
  std::uint32_t size = 0;
  std::uint32_t more = 0;  ///< kMoreOfFrame, kMoreFrames.
};
inline constexpr std::uint32_t kMoreOfFrame = 1;
inline constexpr std::uint32_t kMoreFrames = 2;
inline constexpr std::uint64_t kFragmentAlignment = 8;

/// Bytes of a ring that a fragment of `size` bytes takes.
constexpr std::uint64_t bytes_of_fragment(std::uint64_t size) {
  return sizeof(FragmentHeader) + (size + kFragmentAlignment - 1) / kFragmentAlignment * kFragmentAlignment;
}

/// The writing side of a ring with one writer and one reader. Owned by one thread at a time; the memory and the bell
/// are the caller's. Cost of a fragment: one copy; of publish(): one store, and a system call if the reader sleeps.
class RingWriter {
 public:
  /// `bell`: the reader's eventfd, -1 if it has none.
  RingWriter(RingMemory memory, int bell) : memory_(memory), bell_(bell) {}

  std::uint64_t capacity() const { return memory_.capacity; }
  /// Bytes that are free (fragments take bytes_of_fragment() each). Looks at shared memory if fewer than `wanted` were
  /// free at the last look. A reader that claims to have read what was never written leaves no room for ever.
  std::uint64_t room(std::uint64_t wanted);
  /// Copies a fragment into the ring; it must have room. Nobody sees it before publish().
  void write(std::span<const std::byte> bytes, std::uint32_t more);
  /// Shows the reader what was written, and wakes it if it sleeps.
  void publish();
  /// Sleeps until there are `wanted` bytes, at most `timeout` (negative: for ever), after looking `spins` times without
  /// sleeping. False: there are not.
  bool wait_for_room(std::uint64_t wanted, Duration timeout, int spins);
  /// Messages that the reader says it has taken: what it was about to do with others it has not begun.
  std::uint64_t taken() const { return memory_.header->taken.load(std::memory_order_acquire); }

 private:
  RingMemory memory_;
  int bell_;
  std::uint64_t tail_ = 0;
  std::uint64_t head_ = 0;  ///< As it was last seen.
};

/// The reading side. Owned by one thread at a time.
class RingReader {
 public:
  struct Fragment {
    std::span<const std::byte> bytes;  ///< Valid until pop(); the writer may change them meanwhile: copy, then read.
    std::uint32_t more = 0;
  };

  /// `bell`: the writer's eventfd, -1 if it has none.
  RingReader(RingMemory memory, int bell) : memory_(memory), bell_(bell) {}

  enum class Found { nothing, fragment, nonsense };
  /// The oldest fragment. nonsense: what stands there is none; so it remains.
  Found next(Fragment& fragment);
  /// Done with the fragment that next() gave. The writer hears of the room now and then, and when the ring is empty.
  void pop();
  /// A message is whole, and about to be somebody's: said before anything is done with it.
  void take() { memory_.header->taken.store(++taken_, std::memory_order_release); }

  /// Says how it will sleep. False: there is something to read, and it is awake.
  bool arm(Sleep how);
  /// Whether it said so and nobody has woken it since.
  bool is_armed(Sleep how) const;
  /// It does not sleep after all, and looks without being woken.
  void stay_awake();
  /// Sleeps until there may be something to read, at most `timeout` (negative: for ever), after looking `spins` times
  /// without sleeping. False: there is nothing.
  bool wait(Duration timeout, int spins);

 private:
  bool has_news() const { return memory_.header->tail.load(std::memory_order_acquire) != head_; }
  void show_room();

  RingMemory memory_;
  int bell_;
  std::uint64_t head_ = 0;
  std::uint64_t shown_ = 0;  ///< Of head_, to the writer.
  std::uint64_t taken_ = 0;  ///< Messages.
  std::uint64_t tail_ = 0;   ///< As it was last seen.
  std::uint64_t size_ = 0;   ///< Of the fragment that next() gave, with its header.
};

}  // namespace paceline::channel
