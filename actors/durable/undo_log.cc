#include "actors/durable/undo_log.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

namespace paceline::actors {
namespace {

constexpr std::size_t kBlock = UndoLog::kBlock;

std::size_t blocks_of(std::size_t bytes) { return (bytes + kBlock - 1) / kBlock; }

}  // namespace

struct UndoLog::Head {
  std::atomic<std::uint64_t> version;
  std::atomic<std::uint64_t> saved;
};

std::size_t UndoLog::data_at(std::size_t bytes) {
  return kBlock + blocks_of(blocks_of(bytes) * sizeof(std::uint32_t)) * kBlock;
}

std::size_t UndoLog::memory_for(std::size_t bytes) { return data_at(bytes) + 2 * blocks_of(bytes) * kBlock; }

UndoLog::UndoLog(std::byte* memory, std::size_t bytes, Reserve reserve)
    : memory_(memory),
      bytes_(bytes),
      reserve_(std::move(reserve)),
      is_saved_(blocks_of(bytes)),
      is_reserved_(blocks_of(bytes)) {}

UndoLog::Head& UndoLog::head() const { return *reinterpret_cast<Head*>(memory_); }
std::uint32_t* UndoLog::saved() const { return reinterpret_cast<std::uint32_t*>(memory_ + kBlock); }
std::byte* UndoLog::copies() const { return memory_ + data_at(bytes_) + blocks_of(bytes_) * kBlock; }

Result<void> UndoLog::save(std::size_t offset, std::size_t size, std::uint64_t version) {
  if (version_ != version) begin(version);
  const std::size_t end = blocks_of(offset + size);
  for (std::size_t first = offset / kBlock; size > 0 && first < end;) {
    if (is_saved_[first]) {
      ++first;
      continue;
    }
    std::size_t last = first;
    while (last < end && !is_saved_[last]) ++last;
    PACELINE_TRY(save_run(first, last));
    first = last;
  }
  return {};
}

/// None is saved of this version. The count goes first: what was saved of an earlier version counts no more anyway.
void UndoLog::begin(std::uint64_t version) {
  const std::uint64_t before = version_ == 0 ? 0 : head().saved.load(std::memory_order_relaxed);
  for (std::uint64_t i = 0; i < before; ++i) is_saved_[saved()[i]] = false;
  head().saved.store(0, std::memory_order_release);
  head().version.store(version, std::memory_order_release);
  version_ = version;
}

Result<void> UndoLog::save_run(std::size_t first, std::size_t end) {
  for (std::size_t block = first; block < end;) {
    if (is_reserved_[block]) {
      ++block;
      continue;
    }
    std::size_t last = block;
    while (last < end && !is_reserved_[last]) ++last;
    const std::size_t at = data_at(bytes_) + block * kBlock, size = (last - block) * kBlock;
    PACELINE_TRY(reserve_(at, size));
    PACELINE_TRY(reserve_(at + blocks_of(bytes_) * kBlock, size));
    std::fill(is_reserved_.begin() + static_cast<std::ptrdiff_t>(block),
              is_reserved_.begin() + static_cast<std::ptrdiff_t>(last), true);
    block = last;
  }
  std::memcpy(copies() + first * kBlock, data().data() + first * kBlock, (end - first) * kBlock);
  std::uint64_t count = head().saved.load(std::memory_order_relaxed);
  for (std::size_t block = first; block < end; ++block) {
    saved()[count++] = static_cast<std::uint32_t>(block);
    is_saved_[block] = true;
  }
  head().saved.store(count, std::memory_order_release);
  // From here on they may be changed. Who dies does so between two instructions: only the compiler could reorder.
  std::atomic_signal_fence(std::memory_order_seq_cst);
  return {};
}

/// May be done again by the next process, if this one dies meanwhile.
void UndoLog::roll_back(std::uint64_t version) {
  if (head().version.load(std::memory_order_acquire) == version) {
    const std::uint64_t count =
        std::min<std::uint64_t>(head().saved.load(std::memory_order_acquire), blocks_of(bytes_));
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::size_t block = saved()[i];
      if (block >= blocks_of(bytes_)) continue;
      std::memcpy(data().data() + block * kBlock, copies() + block * kBlock, kBlock);
    }
    head().saved.store(0, std::memory_order_release);
  }
  std::fill(is_saved_.begin(), is_saved_.end(), false);
  version_ = 0;
}

}  // namespace paceline::actors
