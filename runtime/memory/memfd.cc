#include "runtime/memory/memfd.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

namespace paceline::memory {

using process::BorrowedFd;
using process::Fd;

Result<Fd> create_memfd(const char* name, std::uint64_t size) {
  Fd fd(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL));
  if (!fd && errno == EINVAL) fd.reset(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));  // Linux before 6.3.
  if (!fd) return fail_errno("create shared memory (memfd_create)");
  if (::ftruncate(fd.get(), static_cast<off_t>(size)) != 0)
    return fail_errno("set the size of shared memory (ftruncate)");
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

Result<void> add_seals(BorrowedFd fd, int seals) {
  if (::fcntl(fd.get(), F_ADD_SEALS, seals) != 0) return fail_errno("seal shared memory (F_ADD_SEALS)");
  return {};
}

Result<void> check_memfd(BorrowedFd fd, std::uint64_t size, const char* what) {
  const std::string name(what);
  constexpr int kNeeded = F_SEAL_SHRINK | F_SEAL_GROW;
  const int seals = ::fcntl(fd.get(), F_GET_SEALS);
  if (seals < 0) return fail(ErrorKind::invalid, name + ": the descriptor is no shared memory that can be sealed");
  if ((seals & kNeeded) != kNeeded) return fail(ErrorKind::invalid, name + ": its size is not sealed");
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

}  // namespace paceline::memory
