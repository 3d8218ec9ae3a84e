#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "actors/durable/undo_log.h"
#include "actors/process_ids.h"
#include "actors/serialise.h"

namespace paceline::actors {

/// Which calls an actor has done, and what it answered, for calls that are sent again: in memory that outlives its
/// process, published with what the calls have changed (UndoLog).
///
/// Calls of one process come in the order of their numbers, and what is sent again comes in that order before later
/// ones. So the last number that was done of each process says of every call that is sent again whether it was done:
/// none is done twice, however little is kept of answers. Bounds: kCallersMax processes, kRingBytes of answers of all
/// of them, the oldest of which go first; an answer of more than kAnswerMax is not kept.
///
/// Sans-I/O. Owned by one thread.
class CallRecords {
 public:
  static constexpr std::size_t kRingBytes = std::size_t{4} << 20;
  static constexpr std::size_t kAnswerMax = std::size_t{1} << 20;
  static constexpr std::size_t kCallersMax = std::size_t{1} << 16;

  static std::size_t memory_for();
  /// `memory`: zero, or what an earlier process left, rolled back.
  CallRecords(std::byte* memory, UndoLog::Reserve reserve);

  /// To be published with `version`, and at most one with each.
  Result<void> add(ProcessId caller, std::uint64_t number, bool ok, std::span<const std::byte> answer,
                   std::uint64_t version);
  struct Answer {
    bool ok = false;
    Bytes bytes{};
  };
  enum class Kept { not_done, lost, kept };
  /// Of a call that is sent again. `lost`: it was done, or may have been, and its answer is not here any more.
  Kept find(ProcessId caller, std::uint64_t number, Answer& answer) const;
  void roll_back(std::uint64_t version);

 private:
  struct Head;
  struct Caller;
  struct Record;
  Head& head() const;
  Caller* callers() const;
  std::byte* ring() const { return memory_ + UndoLog::memory_for(table_bytes()); }
  static std::size_t table_bytes();
  void read();
  Result<std::size_t> place_of(ProcessId caller, std::uint64_t version);
  void copy_in(std::uint64_t at, const void* from, std::size_t size);
  void copy_out(std::uint64_t at, void* to, std::size_t size) const;

  std::byte* memory_;
  UndoLog table_;  ///< Head and callers. The ring needs none: what is written to it, nobody looks at before it counts.
  UndoLog::Reserve reserve_;
  std::size_t reserved_ = 0;                                             ///< Of the ring.
  std::unordered_map<ProcessId, std::size_t> places_{};                  ///< Of callers.
  std::map<std::pair<ProcessId, std::uint64_t>, std::uint64_t> kept_{};  ///< Where their answers begin.
};

}  // namespace paceline::actors
