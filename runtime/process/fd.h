#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <utility>

namespace paceline::process {

/// Owns one descriptor.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) reset(std::exchange(other.fd_, -1));
    return *this;
  }
  ~Fd() { reset(); }

  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }
  void reset(int fd = -1) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = fd;
  }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

/// A descriptor whose owner keeps it open meanwhile.
class BorrowedFd {
 public:
  BorrowedFd(const Fd& owner) : fd_(owner.get()) {}
  explicit BorrowedFd(int fd) : fd_(fd) {}

  int get() const { return fd_; }
  /// The same file, close-on-exec. Empty: there is none, or this process can have no more descriptors.
  Fd duplicate() const { return Fd(::fcntl(fd_, F_DUPFD_CLOEXEC, 0)); }

 private:
  int fd_;
};

}  // namespace paceline::process
