#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "runtime/base/result.h"

namespace paceline::actors {

/// A piece of memory that outlives the process that changes it, and whose changes count together: with those of other
/// pieces, from the moment on at which a *version* of all of them is there (a word that the owner of the memory
/// counts up). What is to be changed is saved first, in blocks; a process that dies in between leaves what the next one
/// puts back.
///
///   | version, how many blocks are saved | which | data | their copies |
///
/// What is saved counts while the version is the one that it was saved at: counting up ends it in one store. Nothing
/// here waits for memory to be written out: who reads it next is another process of the same machine. Owned by one
/// thread; the caller owns the memory.
class UndoLog {
 public:
  static constexpr std::size_t kBlock = 4096;
  /// Makes bytes of the memory real: before they are written, so that there is somebody to tell that there are none.
  using Reserve = std::function<Result<void>(std::size_t offset, std::size_t size)>;

  /// Of memory, for so many bytes of data; a multiple of kBlock.
  static std::size_t memory_for(std::size_t bytes);
  /// Where the data begin in it.
  static std::size_t data_at(std::size_t bytes);

  /// `memory`: zero at first, aligned to a block.
  UndoLog(std::byte* memory, std::size_t bytes, Reserve reserve);

  std::span<std::byte> data() const { return {memory_ + data_at(bytes_), bytes_}; }
  /// These bytes of the data may be changed until `version` is over. What Reserve says.
  Result<void> save(std::size_t offset, std::size_t size, std::uint64_t version);
  /// The data are as they were when `version` began.
  void roll_back(std::uint64_t version);

 private:
  struct Head;
  Head& head() const;
  std::uint32_t* saved() const;
  std::byte* copies() const;
  void begin(std::uint64_t version);
  Result<void> save_run(std::size_t first, std::size_t end);

  std::byte* memory_;
  std::size_t bytes_;
  Reserve reserve_;
  std::uint64_t version_ = 0;      ///< That is_saved_ is of.
  std::vector<bool> is_saved_;     ///< By block.
  std::vector<bool> is_reserved_;  ///< The same: its data and its copy.
};

}  // namespace paceline::actors
