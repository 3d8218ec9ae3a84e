#pragma once

#include <cstdint>
#include <string_view>

#include "runtime/base/result.h"
#include "runtime/process/fd.h"

namespace paceline::store {

// Memory that processes share: all of it is made here, and known by its descriptors. It goes with the last of them and
// of its mappings, whatever happens to a process.

struct MemoryShape {
  enum class Sealed {
    later,  ///< Its size is sealed when it is known, with seal_size().
    size,
    size_for_good,  ///< Nobody can add a seal.
  };
  const char* name;  ///< In /proc.
  std::uint64_t size = 0;
  std::uint64_t allocated = 0;  ///< Of its bytes the first so many are there from the start: see allocate().
  Sealed sealed = Sealed::size;
  std::string_view room_of{};  ///< Looks first whether there is room for so many "windows", "shared objects";
  std::uint64_t room = 0;      ///< Bytes that will be taken.
};
/// Zeroed. `infeasible` names what is needed and what is there (MemAvailable, cgroup limit).
Result<process::Fd> create_memory(const MemoryShape& shape);
/// Allocates [offset, offset + size) of it, zeroed: what is touched later cannot fail. `infeasible` when there is too
/// little.
Result<void> allocate(process::BorrowedFd fd, std::uint64_t offset, std::uint64_t size);
Result<void> seal_size(process::BorrowedFd fd);
/// No mapping that is made later can be written to, and nobody can add a seal.
Result<void> seal_for_readers(process::BorrowedFd fd);
/// Nobody can make it shorter or longer, so that no access to a mapping of it ends in SIGBUS.
bool is_size_sealed(process::BorrowedFd fd);
/// Its size is sealed, and is `size`. `invalid`, starting with `what`, if not.
Result<void> check_memory(process::BorrowedFd fd, std::uint64_t size, const char* what);
/// The same memory, to be read only.
Result<process::Fd> reopen_read_only(process::BorrowedFd fd);

}  // namespace paceline::store
