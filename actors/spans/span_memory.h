#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "actors/spans/name_kind.h"

namespace paceline::actors {

// What a worker writes down of the calls that it runs, in memory that outlives it: its agent has the descriptor, and
// reads whenever somebody asks. Nothing else is sent or waited for. A reader believes nothing that stands there
// (actors/spans/span_reader.h).
//
//   header    magic, how many spans were written, how many bytes of names are used
//   running   what each thread runs now: slots of kRecordBytes, the rest of the header's page
//   names     a NameHead and its text each, 8-byte aligned; a name's id is where it begins. Id 0: no name
//   spans     the last kSpansMax that are over, in turn

inline constexpr std::size_t kPageBytes = 4096;
inline constexpr std::size_t kNamesBytes = std::size_t{64} << 10;
inline constexpr std::size_t kSpansMax = 2048;

/// One call. Written by one thread without a lock: one that is being written, or was cut off, does not have the right
/// `check`.
struct SpanRecord {
  std::uint64_t sequence = 0;  ///< From 1 on.
  std::uint64_t task = 0;
  std::int64_t began_ns = 0;  ///< Of steady_now().
  std::int64_t ended_ns = 0;  ///< 0: it runs.
  std::uint32_t name = 0;
  std::uint32_t owner = 0;
  std::uint32_t thread = 0;
  std::uint32_t flags = 0;
  std::uint64_t unused = 0;
  std::uint64_t check = 0;

  static constexpr std::uint32_t kFailed = 1;
  static constexpr std::uint32_t kCoroutine = 2;  ///< It may have waited while others ran on its thread.

  constexpr std::uint64_t checked() const {
    const std::array<std::uint64_t, 7> words = {sequence,
                                                task,
                                                static_cast<std::uint64_t>(began_ns),
                                                static_cast<std::uint64_t>(ended_ns),
                                                std::uint64_t{name} << 32 | owner,
                                                std::uint64_t{thread} << 32 | flags,
                                                unused};
    std::uint64_t sum = 0x9e3779b97f4a7c15;
    for (std::size_t i = 0; i < words.size(); ++i) sum += (words[i] ^ (words[i] >> 29)) * (0xbf58476d1ce4e5b9 + 2 * i);
    return sum ^ (sum >> 32);
  }
};
inline constexpr std::size_t kRecordBytes = sizeof(SpanRecord);
static_assert(kRecordBytes == 64);

struct SpanHeader {
  std::uint64_t magic;
  std::atomic<std::uint64_t> written;
  std::atomic<std::uint64_t> names;  ///< Bytes.
  std::array<std::uint64_t, 5> unused;
};
static_assert(sizeof(SpanHeader) == kRecordBytes && std::atomic<std::uint64_t>::is_always_lock_free);
inline constexpr std::uint64_t kSpanMagic = 0x3130736e61707370;  // "pspans01"

inline constexpr std::size_t kRunningMax = kPageBytes / kRecordBytes - 1;

struct NameHead {
  NameKind kind;
  std::uint32_t bytes;
};
inline constexpr std::size_t kNameMax = 1024;

/// Where a record lies: its words, the last of which is its `check`. Threads may meet in one.
using SpanSlot = std::array<std::atomic<std::uint64_t>, kRecordBytes / sizeof(std::uint64_t)>;
static_assert(sizeof(SpanSlot) == kRecordBytes);

struct SpanMemory {
  SpanHeader header;
  std::array<SpanSlot, kRunningMax> running;
  std::array<std::byte, kNamesBytes> names;
  std::array<SpanSlot, kSpansMax> spans;
};
static_assert(offsetof(SpanMemory, names) == kPageBytes);
inline constexpr std::size_t kSpanMemoryBytes = sizeof(SpanMemory);

}  // namespace paceline::actors
