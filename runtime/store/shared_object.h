#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "runtime/base/result.h"
#include "runtime/process/fd.h"
#include "runtime/store/mapping.h"

namespace paceline::store {

/// Bytes that are written once and then read by many processes: a memfd, filled by one process through fill(), sealed
/// by it (the kernel refuses every later write), mapped read-only by all.
///
///   agent: create() -> fd to the filler -> ... -> told "sealed" -> fd to the readers
///   filler: fill(fd) -> writes data() -> seal()          reader: map(fd)
///
/// The object owns its mapping and its descriptor. Owned by one thread; who has the last pointer may let go of it on
/// any.
class SharedObject {
 public:
  /// Allocates `size` zero bytes (at least 1) and maps nothing. `infeasible` names what is needed and what is there.
  static Result<SharedObject> create(std::uint64_t size);
  /// Maps an object that nobody sealed yet for writing. `invalid`: it is none of `size` bytes.
  static Result<SharedObject> fill(process::Fd fd, std::uint64_t size);
  /// Maps a sealed object for reading. `invalid`: it is none, or not sealed yet.
  static Result<SharedObject> map(process::Fd fd, std::uint64_t size);

  /// A new object with these bytes, one piece behind the other, sealed and mapped for reading (of one zero byte if
  /// there are none). Nothing is zeroed first, and no page is touched here. `infeasible` as create().
  using Pieces = std::span<const std::span<const std::byte>>;
  static Result<SharedObject> sealed_copy_of(Pieces pieces);
  static Result<SharedObject> sealed_copy(std::span<const std::byte> bytes) { return sealed_copy_of({&bytes, 1}); }

  process::BorrowedFd fd() const { return fd_; }
  std::uint64_t size() const { return size_; }
  /// The filler's view; empty unless this came from fill() and is not sealed.
  std::span<std::byte> writable() const;
  /// Contents; empty for an object from create() that is not mapped.
  std::span<const std::byte> data() const;
  /// Ends writing for ever; data() stays at its address. Fails with `invalid` while another process has it mapped for
  /// writing.
  Result<void> seal();
  /// True once the kernel refuses writes; the agent asks this instead of believing the filler.
  static bool is_sealed(process::BorrowedFd fd);

 private:
  SharedObject(process::Fd fd, std::uint64_t size, Mapping memory, bool writable)
      : fd_(std::move(fd)), memory_(std::move(memory)), size_(size), writable_(writable) {}

  process::Fd fd_;
  Mapping memory_;
  std::uint64_t size_;
  bool writable_;
};

}  // namespace paceline::store
