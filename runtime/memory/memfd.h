#pragma once

#include <cstdint>

#include "runtime/base/result.h"
#include "runtime/process/fd.h"

namespace paceline::memory {

// What windows, control pages, objects and channels (runtime/channel/) have in common.

/// A sealable, close-on-exec memfd of `size` bytes. Nothing is allocated yet.
Result<process::Fd> create_memfd(const char* name, std::uint64_t size);
/// Allocates [offset, offset + size) of it, zeroed: what is touched later cannot fail. `infeasible` when there is too
/// little.
Result<void> allocate(process::BorrowedFd fd, std::uint64_t offset, std::uint64_t size);
/// Adds F_SEAL_* flags.
Result<void> add_seals(process::BorrowedFd fd, int seals);
/// The file is sealed against shrinking and growing and is exactly `size` bytes long, so that no access to a mapping of
/// it ends in SIGBUS. `invalid`, starting with `what`, if not.
Result<void> check_memfd(process::BorrowedFd fd, std::uint64_t size, const char* what);
/// The same file, read-only, close-on-exec.
Result<process::Fd> reopen_read_only(process::BorrowedFd fd);

}  // namespace paceline::memory
