#include "runtime/store/shared_object.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <utility>

#include "runtime/store/shared_memory.h"

namespace paceline::store {
namespace {

constexpr std::size_t kWriteMost = std::size_t{1} << 30;

/// 0, or errno. The kernel also refuses (EBUSY) while it holds on to pages itself for a moment, as it does on a machine
/// that is busy: it is asked again.
int seal_writes(process::BorrowedFd fd) {
  constexpr int kTries = 9;  // The last after a quarter of a second.
  for (int i = 0;; ++i) {
    if (::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SEAL) == 0) return 0;
    if (errno != EBUSY || i + 1 == kTries) return errno;
    std::this_thread::sleep_for(std::chrono::milliseconds(1 << i));
  }
}

}  // namespace

Result<SharedObject> SharedObject::create(std::uint64_t size) {
  if (size == 0 || size > (1ull << 46))
    return fail(ErrorKind::invalid, "shared object: " + std::to_string(size) + " bytes");
  auto fd = create_memory(
      {.name = "paceline-object", .size = size, .allocated = size, .room_of = "shared objects", .room = size});
  if (!fd) return tl::unexpected(fd.error());
  return SharedObject(*std::move(fd), size, {}, false);
}

Result<SharedObject> SharedObject::fill(process::Fd fd, std::uint64_t size) {
  PACELINE_TRY(check_memory(fd, size, "shared object"));
  if (is_sealed(fd)) return fail(ErrorKind::invalid, "shared object: it is sealed: map it for reading");
  auto memory = Mapping::map(fd, size, Mapping::Access::write, "shared object");
  if (!memory) return tl::unexpected(memory.error());
  return SharedObject(std::move(fd), size, *std::move(memory), true);
}

Result<SharedObject> SharedObject::map(process::Fd fd, std::uint64_t size) {
  PACELINE_TRY(check_memory(fd, size, "shared object"));
  if (!is_sealed(fd)) return fail(ErrorKind::invalid, "shared object: it is not sealed yet");
  // Kernels before 6.7 map a write-sealed file through no other than a read-only descriptor.
  const auto reader = reopen_read_only(fd);
  if (!reader) return tl::unexpected(reader.error());
  auto memory = Mapping::map(*reader, size, Mapping::Access::read, "shared object");
  if (!memory) return tl::unexpected(memory.error());
  return SharedObject(std::move(fd), size, *std::move(memory), false);
}

std::span<std::byte> SharedObject::writable() const {
  if (!writable_) return {};
  return {memory_.data(), memory_.size()};
}

std::span<const std::byte> SharedObject::data() const { return {memory_.data(), memory_.size()}; }

Result<SharedObject> SharedObject::sealed_copy_of(Pieces pieces) {
  std::uint64_t size = 0;
  for (const auto& piece : pieces) size += piece.size();
  auto fd = create_memory(
      {.name = "paceline-object", .size = std::max<std::uint64_t>(1, size), .room_of = "shared objects", .room = size});
  if (!fd) return tl::unexpected(fd.error());
  off_t at = 0;
  for (auto piece : pieces) {
    while (!piece.empty()) {
      const ssize_t written = ::pwrite(fd->get(), piece.data(), std::min(piece.size(), kWriteMost), at);
      if (written < 0 && errno == EINTR) continue;
      if (written < 0 && (errno == ENOSPC || errno == ENOMEM))
        return fail(ErrorKind::infeasible, "shared objects: the system refused " + std::to_string(size >> 20) + " MiB");
      if (written < 0) return fail_errno("shared object: write to it (pwrite)");
      at += written;
      piece = piece.subspan(static_cast<std::size_t>(written));
    }
  }
  if (const int code = seal_writes(*fd); code != 0) {
    errno = code;
    return fail_errno("shared object: F_SEAL_WRITE");
  }
  return map(*std::move(fd), std::max<std::uint64_t>(1, size));
}

Result<void> SharedObject::seal() {
  if (!writable_) return fail(ErrorKind::invalid, "shared object: only the process that fills it can seal it");
  // The kernel refuses the seal while anybody, ourselves included, has the file mapped for writing. The addresses stay
  // reserved.
  std::byte* const base = memory_.data();
  if (::mmap(base, size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
    return fail_errno("shared object: give up the writable mapping (mmap)");
  if (const int code = seal_writes(fd_); code != 0) {
    // Still to be filled: back to the state before.
    if (::mmap(base, size_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd_.get(), 0) == MAP_FAILED)
      return fail_errno("shared object: map it again after the seal was refused (mmap)");
    errno = code;
    if (code == EBUSY)
      return fail(ErrorKind::invalid, "shared object: another process has it mapped for writing: it cannot be sealed");
    return fail_errno("shared object: F_SEAL_WRITE");
  }
  writable_ = false;
  const auto reader = reopen_read_only(fd_);
  if (!reader) return tl::unexpected(reader.error());
  if (::mmap(base, size_, PROT_READ, MAP_SHARED | MAP_FIXED, reader->get(), 0) == MAP_FAILED)
    return fail_errno("shared object: map it for reading (mmap)");
  return {};
}

bool SharedObject::is_sealed(process::BorrowedFd fd) {
  const int seals = ::fcntl(fd.get(), F_GET_SEALS);
  return seals >= 0 && (seals & F_SEAL_WRITE) != 0;
}

}  // namespace paceline::store
