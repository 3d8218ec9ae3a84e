#include "runtime/channel/ring.h"

#include <unistd.h>

#include <cstring>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/base/futex.h"
#include "runtime/base/steady_now.h"

namespace paceline::channel {
namespace {

/// Wakes a side that said it sleeps. Both its word and what it sleeps for are read and written in one order by all
/// (seq_cst): either it sees the news when it looks once more before sleeping, or its word is seen here.
void wake(std::atomic<std::uint32_t>& sleeps, int bell) {
  if (sleeps.load(std::memory_order_seq_cst) == static_cast<std::uint32_t>(Sleep::awake)) return;
  const auto how = sleeps.exchange(static_cast<std::uint32_t>(Sleep::awake), std::memory_order_seq_cst);
  if (how == static_cast<std::uint32_t>(Sleep::on_futex)) futex_wake(sleeps, 1);
  if (how != static_cast<std::uint32_t>(Sleep::on_bell) || bell < 0) return;
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(bell, &one, sizeof one);  // Full: then it is readable already.
}

/// Looks once, and `spins` times more.
template <class Done>
bool look(int spins, const Done& done) {
  for (int i = 0; i < spins; ++i) {
    if (done()) return true;
    spin_pause();
  }
  return done();
}

/// Sleeps on a side's word until `done()`; in the end the word says that the side is awake.
template <class Done>
bool sleep_until(std::atomic<std::uint32_t>& sleeps, Duration timeout, const Done& done) {
  const Instant deadline = timeout < Duration::zero() ? Instant::max() : steady_now() + timeout;
  const auto asleep = static_cast<std::uint32_t>(Sleep::on_futex);
  while (true) {
    sleeps.store(asleep, std::memory_order_seq_cst);
    const bool reached = done();
    const Duration left = timeout < Duration::zero() ? timeout : deadline - steady_now();
    if (reached || (timeout >= Duration::zero() && left <= Duration::zero())) {
      sleeps.store(static_cast<std::uint32_t>(Sleep::awake), std::memory_order_seq_cst);
      return reached;
    }
    futex_wait(sleeps, asleep, left);
  }
}

}  // namespace

std::uint64_t RingWriter::room(std::uint64_t wanted) {
  const auto free = [this] {
    const std::uint64_t used = tail_ - head_;
    return used > memory_.capacity ? 0 : memory_.capacity - used;
  };
  if (free() < wanted) head_ = memory_.header->head.load(std::memory_order_seq_cst);
  return free();
}

void RingWriter::write(std::span<const std::byte> bytes, std::uint32_t more) {
  PACELINE_CHECK(bytes_of_fragment(bytes.size()) <= room(bytes_of_fragment(bytes.size())), "a ring has no such room");
  std::byte* const at = memory_.bytes + (tail_ & (memory_.capacity - 1));
  const FragmentHeader header{static_cast<std::uint32_t>(bytes.size()), more};
  std::memcpy(at, &header, sizeof header);
  if (!bytes.empty()) std::memcpy(at + sizeof header, bytes.data(), bytes.size());
  tail_ += bytes_of_fragment(bytes.size());
}

void RingWriter::publish() {
  memory_.header->tail.store(tail_, std::memory_order_seq_cst);
  wake(memory_.header->reader_sleeps, bell_);
}

bool RingWriter::wait_for_room(std::uint64_t wanted, Duration timeout, int spins) {
  const auto enough = [&] { return room(wanted) >= wanted; };
  return look(spins, enough) || sleep_until(memory_.header->writer_sleeps, timeout, enough);
}

RingReader::Found RingReader::next(Fragment& fragment) {
  if (tail_ == head_) {
    tail_ = memory_.header->tail.load(std::memory_order_acquire);
    if (tail_ == head_) {
      if (shown_ != head_) show_room();
      return Found::nothing;
    }
  }
  const std::uint64_t there = tail_ - head_;
  const std::byte* const at = memory_.bytes + (head_ & (memory_.capacity - 1));
  FragmentHeader header;
  std::memcpy(&header, at, sizeof header);
  size_ = bytes_of_fragment(header.size);
  if (there > memory_.capacity || size_ > there || header.more > (kMoreOfFrame | kMoreFrames)) return Found::nonsense;
  fragment = {{at + sizeof header, header.size}, header.more};
  return Found::fragment;
}

void RingReader::pop() {
  head_ += std::exchange(size_, 0);
  if (head_ - shown_ >= memory_.capacity / 4) show_room();
}

void RingReader::show_room() {
  shown_ = head_;
  memory_.header->head.store(head_, std::memory_order_seq_cst);
  wake(memory_.header->writer_sleeps, bell_);
}

bool RingReader::arm(Sleep how) {
  if (shown_ != head_) show_room();  // Who sleeps for news does not keep the writer from bringing them.
  memory_.header->reader_sleeps.store(static_cast<std::uint32_t>(how), std::memory_order_seq_cst);
  if (memory_.header->tail.load(std::memory_order_seq_cst) == head_) return true;
  memory_.header->reader_sleeps.store(static_cast<std::uint32_t>(Sleep::awake), std::memory_order_seq_cst);
  return false;
}

bool RingReader::is_armed(Sleep how) const {
  return memory_.header->reader_sleeps.load(std::memory_order_seq_cst) == static_cast<std::uint32_t>(how);
}

void RingReader::stay_awake() {
  auto& sleeps = memory_.header->reader_sleeps;
  const auto awake = static_cast<std::uint32_t>(Sleep::awake);
  if (sleeps.load(std::memory_order_relaxed) != awake) sleeps.store(awake, std::memory_order_relaxed);
}

bool RingReader::wait(Duration timeout, int spins) {
  if (look(spins, [this] { return has_news(); })) return true;
  if (shown_ != head_) show_room();
  return sleep_until(memory_.header->reader_sleeps, timeout,
                     [this] { return memory_.header->tail.load(std::memory_order_seq_cst) != head_; });
}

}  // namespace paceline::channel
