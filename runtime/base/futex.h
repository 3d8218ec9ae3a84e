#pragma once

#include <atomic>
#include <cstdint>

#include "runtime/base/instant.h"

namespace paceline {

/// Sleeps while `word` is `expected`, at most `timeout` (negative: for ever); may also return early. The word may lie
/// in memory that other processes map, and that this one may only read. Returns false once `timeout` has passed.
bool futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t expected, Duration timeout);

/// Wakes up to `count` of those that sleep on `word`.
void futex_wake(std::atomic<std::uint32_t>& word, int count);

/// Tells the core that this is a loop that waits.
inline void spin_pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace paceline
