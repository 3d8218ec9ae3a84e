#include "runtime/store/mapping.h"

#include <sys/mman.h>

#include <string>

namespace paceline::store {
namespace {

constexpr std::uint64_t kPage = 4096;

/// Instead of what is reserved there.
Result<void> place(std::byte* at, process::BorrowedFd fd, std::uint64_t size, std::uint64_t offset, const char* what) {
  if (::mmap(at, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd.get(), static_cast<off_t>(offset)) !=
      MAP_FAILED)
    return {};
  return fail_errno(std::string(what) + ": map " + std::to_string(size) + " bytes (mmap)");
}

}  // namespace

Result<Mapping> Mapping::map(process::BorrowedFd fd, std::uint64_t size, Access access, const char* what,
                             std::uint64_t offset) {
  const int protection = access == Access::write ? PROT_READ | PROT_WRITE : PROT_READ;
  void* const base = ::mmap(nullptr, size, protection, MAP_SHARED, fd.get(), static_cast<off_t>(offset));
  if (base == MAP_FAILED) return fail_errno(std::string(what) + ": map " + std::to_string(size) + " bytes (mmap)");
  return Mapping(static_cast<std::byte*>(base), size);
}

/// Addresses with nothing at them.
Result<Mapping> Mapping::reserve(std::uint64_t size, const char* what) {
  void* const base = ::mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED)
    return fail_errno(std::string(what) + ": reserve " + std::to_string(size >> 20) + " MiB of addresses (mmap)");
  return Mapping(static_cast<std::byte*>(base), size);
}

Result<Mapping> Mapping::twice(process::BorrowedFd fd, std::uint64_t offset, std::uint64_t size, const char* what) {
  auto both = reserve(2 * size, what);
  if (!both) return both;
  for (std::byte* const at : {both->base_, both->base_ + size}) PACELINE_TRY(place(at, fd, size, offset, what));
  return both;
}

Result<Mapping> Mapping::aligned(process::BorrowedFd fd, std::uint64_t size, std::uint64_t alignment,
                                 const char* what) {
  auto hold = reserve(size + alignment, what);
  if (!hold) return hold;
  const auto start = reinterpret_cast<std::uintptr_t>(hold->base_);
  const std::uint64_t before = (start + alignment - 1) / alignment * alignment - start;
  std::byte* const at = hold->base_ + before;
  PACELINE_TRY(place(at, fd, size, 0, what));
  hold->base_ = nullptr;
  if (before > 0) ::munmap(at - before, before);
  const std::uint64_t used = (size + kPage - 1) / kPage * kPage, behind = alignment - before;
  if (size + behind > used) ::munmap(at + used, size + behind - used);
  return Mapping(at, size);
}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  const Mapping old(std::exchange(base_, std::exchange(other.base_, nullptr)),
                    std::exchange(size_, std::exchange(other.size_, 0)));
  return *this;
}

Mapping::~Mapping() {
  if (base_ != nullptr) ::munmap(base_, size_);
}

}  // namespace paceline::store
