#include "runtime/memory/control.h"

#include <sched.h>

#include <array>
#include <bit>
#include <climits>
#include <new>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/base/futex.h"
#include "runtime/base/steady_now.h"
#include "runtime/store/shared_memory.h"

namespace paceline::memory {

namespace {

constexpr std::uint64_t kSize = 4096;
constexpr std::uint64_t kControlMagic = 0x316c746e6f636170;  // "paconlt1"

constexpr std::int64_t kFresh = 1, kAveraged = 2, kEnd = 4, kLrMayDecay = 8, kOfAll = 16;

}  // namespace

/// The verdict slot is a sequence lock: `sequence` is odd while the agent writes. Its fields are relaxed atomics, so
/// that a reader that comes too early reads a mixture, notices, and nothing is undefined.
struct ControlPage::Page {
  std::uint64_t magic = kControlMagic;
  alignas(64) Words words;
  alignas(64) std::atomic<std::uint64_t> sequence{0};
  std::array<std::atomic<std::int64_t>, 6> fields{};  ///< own, next, next_round, skipped, flags, scale.
};

Result<ControlPage> ControlPage::create() {
  static_assert(sizeof(Page) <= kSize && std::atomic<std::uint64_t>::is_always_lock_free);
  auto fd = store::create_memory({.name = "paceline-control", .size = kSize, .allocated = kSize});
  if (!fd) return tl::unexpected(fd.error());
  auto memory = store::Mapping::map(*fd, kSize, store::Mapping::Access::write, "control page");
  if (!memory) return tl::unexpected(memory.error());
  new (memory->data()) Page();
  // This mapping stays writable, no later one can be: not even one of the same descriptor.
  PACELINE_TRY(store::seal_for_readers(*fd));
  return ControlPage(*std::move(fd), *std::move(memory));
}

Result<ControlPage> ControlPage::map(process::BorrowedFd fd) {
  PACELINE_TRY(store::check_memory(fd, kSize, "control page"));
  auto memory = store::Mapping::map(fd, kSize, store::Mapping::Access::read, "control page");
  if (!memory) return tl::unexpected(memory.error());
  ControlPage page({}, *std::move(memory));
  if (page.page().magic != kControlMagic)
    return fail(ErrorKind::invalid, "control page: the shared memory is none of this version of Paceline");
  return page;
}

ControlPage::Page& ControlPage::page() const { return *std::launder(reinterpret_cast<Page*>(memory_.data())); }

const ControlPage::Words& ControlPage::words() const { return page().words; }

ControlPage::Words& ControlPage::words() { return page().words; }

Result<process::Fd> ControlPage::read_only_fd() const {
  PACELINE_CHECK(fd_, "only the agent gives descriptors of a control page");
  return store::reopen_read_only(fd_);
}

void ControlPage::ring() {
  PACELINE_CHECK(fd_, "a worker maps its control page read-only");
  words().bell.fetch_add(1, std::memory_order_release);
  futex_wake(words().bell, INT_MAX);
}

void ControlPage::set_verdict(const WorkerVerdict& verdict) {
  PACELINE_CHECK(fd_, "a worker maps its control page read-only");
  const std::uint64_t sequence = page().sequence.load(std::memory_order_relaxed);
  page().sequence.store(sequence + 1, std::memory_order_relaxed);
  // Release on every field: who reads a new one also sees the odd sequence.
  const std::int64_t flags = (verdict.fresh ? kFresh : 0) | (verdict.averaged ? kAveraged : 0) |
                             (verdict.end ? kEnd : 0) | (verdict.lr_may_decay ? kLrMayDecay : 0) |
                             (verdict.of_all ? kOfAll : 0);
  const std::array<std::int64_t, 6> values{verdict.own,     verdict.next, verdict.next_round,
                                           verdict.skipped, flags,        std::bit_cast<std::int64_t>(verdict.scale)};
  for (std::size_t i = 0; i < values.size(); ++i) page().fields[i].store(values[i], std::memory_order_release);
  page().sequence.store(sequence + 2, std::memory_order_release);
}

std::optional<ControlPage::Numbered> ControlPage::verdict(std::uint64_t seen) const {
  const std::uint64_t before = page().sequence.load(std::memory_order_acquire);
  if (before % 2 != 0 || before / 2 <= seen) return std::nullopt;
  std::array<std::int64_t, 6> values{};
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = page().fields[i].load(std::memory_order_acquire);
  if (page().sequence.load(std::memory_order_relaxed) != before) return std::nullopt;
  return Numbered{before / 2,
                  {.own = values[0],
                   .next = values[1],
                   .next_round = values[2],
                   .skipped = values[3],
                   .fresh = (values[4] & kFresh) != 0,
                   .averaged = (values[4] & kAveraged) != 0,
                   .end = (values[4] & kEnd) != 0,
                   .lr_may_decay = (values[4] & kLrMayDecay) != 0,
                   .of_all = (values[4] & kOfAll) != 0,
                   .scale = std::bit_cast<double>(values[5])}};
}

bool ControlPage::wait(std::uint32_t seen, Duration timeout, Patience patience) const {
  for (int i = 0; i < patience.spins; ++i) {
    if (bell() != seen) return true;
    spin_pause();
  }
  for (int i = 0; i < patience.yields; ++i) {
    if (bell() != seen) return true;
    ::sched_yield();
  }
  const Instant deadline = timeout < Duration::zero() ? Instant::max() : steady_now() + timeout;
  while (bell() == seen) {
    const Duration left = timeout < Duration::zero() ? timeout : deadline - steady_now();
    if (timeout >= Duration::zero() && left <= Duration::zero()) return false;
    futex_wait(words().bell, seen, left);
  }
  return true;
}

}  // namespace paceline::memory
