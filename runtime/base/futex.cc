#include "runtime/base/futex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

namespace paceline {

// Not FUTEX_PRIVATE: the word may be shared with other processes.

bool futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t expected, Duration timeout) {
  if (timeout == Duration::zero()) return word.load(std::memory_order_acquire) != expected;
  timespec left{};
  if (timeout > Duration::zero()) {
    left.tv_sec = static_cast<std::time_t>(timeout.count() / 1'000'000'000);
    left.tv_nsec = static_cast<long>(timeout.count() % 1'000'000'000);
  }
  const auto status =
      ::syscall(SYS_futex, &word, FUTEX_WAIT, expected, timeout > Duration::zero() ? &left : nullptr, nullptr, 0);
  return status == 0 || errno != ETIMEDOUT;
}

void futex_wake(std::atomic<std::uint32_t>& word, int count) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE, count, nullptr, nullptr, 0);
}

}  // namespace paceline
