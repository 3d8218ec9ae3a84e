#include "runtime/memory/shared_object.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "runtime/memory/memfd.h"
#include "runtime/memory/memory_room.h"

namespace paceline::memory {

namespace {

/// Read-only at `where` (nullptr: anywhere). Through a read-only descriptor: kernels before 6.7 map a write-sealed file
/// no other way.
Result<std::byte*> map_read_only(int fd, std::uint64_t size, void* where) {
  auto reader = reopen_read_only(fd);
  if (!reader) return tl::unexpected(reader.error());
  void* base = ::mmap(where, size, PROT_READ, MAP_SHARED | (where != nullptr ? MAP_FIXED : 0), *reader, 0);
  const int code = errno;
  ::close(*reader);
  errno = code;
  if (base == MAP_FAILED) return fail_errno("shared object: map " + std::to_string(size) + " bytes (mmap)");
  return static_cast<std::byte*>(base);
}

}  // namespace

Result<SharedObject> SharedObject::create(std::uint64_t size) {
  if (size == 0 || size > (1ull << 46))
    return fail(ErrorKind::invalid, "shared object: " + std::to_string(size) + " bytes");
  PACELINE_TRY(check_room("shared objects", size));
  auto fd = create_memfd("paceline-object", size);
  if (!fd) return tl::unexpected(fd.error());
  SharedObject object;
  object.fd_ = *fd;
  object.size_ = size;
  PACELINE_TRY(allocate(*fd, 0, size));
  PACELINE_TRY(add_seals(*fd, F_SEAL_SHRINK | F_SEAL_GROW));
  return object;
}

Result<SharedObject> SharedObject::fill(int fd, std::uint64_t size) {
  SharedObject object;
  object.fd_ = fd;
  object.size_ = size;
  PACELINE_TRY(check_memfd(fd, size, "shared object"));
  if (is_sealed(fd)) return fail(ErrorKind::invalid, "shared object: it is sealed: map it for reading");
  void* base = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (base == MAP_FAILED) return fail_errno("shared object: map " + std::to_string(size) + " bytes for writing (mmap)");
  object.base_ = static_cast<std::byte*>(base);
  object.writable_ = true;
  return object;
}

Result<SharedObject> SharedObject::map(int fd, std::uint64_t size) {
  SharedObject object;
  object.fd_ = fd;
  object.size_ = size;
  PACELINE_TRY(check_memfd(fd, size, "shared object"));
  if (!is_sealed(fd)) return fail(ErrorKind::invalid, "shared object: it is not sealed yet");
  auto base = map_read_only(fd, size, nullptr);
  if (!base) return tl::unexpected(base.error());
  object.base_ = *base;
  return object;
}

SharedObject::SharedObject(SharedObject&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      base_(std::exchange(other.base_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      writable_(std::exchange(other.writable_, false)) {}

SharedObject& SharedObject::operator=(SharedObject&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(base_, other.base_);
  std::swap(size_, other.size_);
  std::swap(writable_, other.writable_);
  return *this;
}

SharedObject::~SharedObject() {
  if (base_ != nullptr) ::munmap(base_, size_);
  if (fd_ >= 0) ::close(fd_);
}

std::span<std::byte> SharedObject::writable() const {
  if (!writable_) return {};
  return {base_, size_};
}

std::span<const std::byte> SharedObject::data() const {
  if (base_ == nullptr) return {};
  return {base_, size_};
}

Result<SharedObject> SharedObject::sealed_copy(std::span<const std::byte> bytes) {
  const std::uint64_t size = std::max<std::size_t>(1, bytes.size());
  auto created = create(size);
  if (!created) return created;
  auto object = fill(::fcntl(created->fd(), F_DUPFD_CLOEXEC, 0), size);
  if (!object) return object;
  if (!bytes.empty()) std::memcpy(object->writable().data(), bytes.data(), bytes.size());
  PACELINE_TRY(object->seal());
  return object;
}

Result<void> SharedObject::seal() {
  if (!writable_) return fail(ErrorKind::invalid, "shared object: only the process that fills it can seal it");
  // The kernel refuses the seal while anybody, ourselves included, has the file mapped for writing. The addresses stay
  // reserved.
  if (::mmap(base_, size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
    return fail_errno("shared object: give up the writable mapping (mmap)");
  if (::fcntl(fd_, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SEAL) != 0) {
    const int code = errno;
    // Still to be filled: back to the state before.
    if (::mmap(base_, size_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd_, 0) == MAP_FAILED)
      return fail_errno("shared object: map it again after the seal was refused (mmap)");
    errno = code;
    if (code == EBUSY)
      return fail(ErrorKind::invalid, "shared object: another process has it mapped for writing: it cannot be sealed");
    return fail_errno("shared object: F_SEAL_WRITE");
  }
  writable_ = false;
  auto base = map_read_only(fd_, size_, base_);
  if (!base) return tl::unexpected(base.error());
  return {};
}

bool SharedObject::is_sealed(int fd) {
  const int seals = ::fcntl(fd, F_GET_SEALS);
  return seals >= 0 && (seals & F_SEAL_WRITE) != 0;
}

}  // namespace paceline::memory
