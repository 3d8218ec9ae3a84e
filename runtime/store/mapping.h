#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "runtime/base/result.h"
#include "runtime/process/fd.h"

namespace paceline::store {

/// Bytes of shared memory at an address of this process, until it goes. The descriptor need not stay open.
class Mapping {
 public:
  enum class Access { read, write };

  Mapping() = default;
  /// The first `size` bytes from `offset` on. Errors begin with `what`.
  static Result<Mapping> map(process::BorrowedFd fd, std::uint64_t size, Access access, const char* what,
                             std::uint64_t offset = 0);
  /// To be written: `size` bytes (whole pages) from `offset` on, and behind them the same again.
  static Result<Mapping> twice(process::BorrowedFd fd, std::uint64_t offset, std::uint64_t size, const char* what);
  /// To be written, at a multiple of `alignment`.
  static Result<Mapping> aligned(process::BorrowedFd fd, std::uint64_t size, std::uint64_t alignment, const char* what);
  Mapping(Mapping&& other) noexcept
      : base_(std::exchange(other.base_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Mapping& operator=(Mapping&& other) noexcept;
  ~Mapping();

  /// nullptr: nothing is mapped.
  std::byte* data() const { return base_; }
  std::uint64_t size() const { return size_; }

 private:
  Mapping(std::byte* base, std::uint64_t size) : base_(base), size_(size) {}
  static Result<Mapping> reserve(std::uint64_t size, const char* what);

  std::byte* base_ = nullptr;
  std::uint64_t size_ = 0;
};

}  // namespace paceline::store
