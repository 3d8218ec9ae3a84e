#include "runtime/store/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <string>

#include "runtime/store/memory_room.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

namespace paceline::store {

using process::BorrowedFd;
using process::Fd;

namespace {

Result<void> add_seals(BorrowedFd fd, int seals) {
  if (::fcntl(fd.get(), F_ADD_SEALS, seals) != 0) return fail_errno("seal shared memory (F_ADD_SEALS)");
  return {};
}

constexpr int kSize = F_SEAL_SHRINK | F_SEAL_GROW;

}  // namespace

Result<Fd> create_memory(const MemoryShape& shape) {
  if (shape.room > 0) PACELINE_TRY(check_room(shape.room_of, shape.room));
  Fd fd(::memfd_create(shape.name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL));
  if (!fd && errno == EINVAL)
    fd.reset(::memfd_create(shape.name, MFD_CLOEXEC | MFD_ALLOW_SEALING));  // Before Linux 6.3.
  if (!fd) return fail_errno("create shared memory (memfd_create)");
  if (::ftruncate(fd.get(), static_cast<off_t>(shape.size)) != 0)
    return fail_errno("set the size of shared memory (ftruncate)");
  using Sealed = MemoryShape::Sealed;
  if (shape.sealed != Sealed::later)
    PACELINE_TRY(add_seals(fd, shape.sealed == Sealed::size ? kSize : kSize | F_SEAL_SEAL));
  if (shape.allocated > 0) PACELINE_TRY(allocate(fd, 0, shape.allocated));
  return fd;
}

Result<void> allocate(BorrowedFd fd, std::uint64_t offset, std::uint64_t size) {
  int status = 0;
  do {
    status = ::fallocate(fd.get(), 0, static_cast<off_t>(offset), static_cast<off_t>(size));
  } while (status != 0 && errno == EINTR);
  if (status == 0) return {};
  if (errno == ENOSPC || errno == ENOMEM)
    return fail(ErrorKind::infeasible, "shared memory: the system refused " + std::to_string(size >> 20) +
                                           " MiB: fewer workers, or a strategy with fewer buffers");
  return fail_errno("allocate shared memory (fallocate)");
}

Result<void> seal_size(BorrowedFd fd) { return add_seals(fd, kSize); }

Result<void> seal_for_readers(BorrowedFd fd) { return add_seals(fd, F_SEAL_FUTURE_WRITE | F_SEAL_SEAL); }

bool is_size_sealed(BorrowedFd fd) {
  const int seals = ::fcntl(fd.get(), F_GET_SEALS);
  return seals >= 0 && (seals & kSize) == kSize;
}

Result<void> check_memory(BorrowedFd fd, std::uint64_t size, const char* what) {
  const std::string name(what);
  if (!is_size_sealed(fd))
    return fail(ErrorKind::invalid, name + ": the descriptor is of no shared memory whose size is sealed");
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return fail_errno(name + ": fstat");
  if (static_cast<std::uint64_t>(status.st_size) != size)
    return fail(ErrorKind::invalid,
                name + ": " + std::to_string(status.st_size) + " bytes long, expected " + std::to_string(size));
  return {};
}

Result<Fd> reopen_read_only(BorrowedFd fd) {
  const std::string path = "/proc/self/fd/" + std::to_string(fd.get());
  Fd copy(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!copy) return fail_errno("open shared memory read-only (" + path + ")");
  return copy;
}

}  // namespace paceline::store
