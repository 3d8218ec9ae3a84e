// Who waits for what comes by a line takes it in itself: to be woken takes two other threads, and longer than most
// calls. First it looks for a moment, then it sleeps on the lines, with the I/O thread or, if it comes again and again,
// in its place. ADR 30, 35.
#include <poll.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "actors/client.h"
#include "runtime/base/steady_now.h"
#include "runtime/process/this_process.h"

namespace paceline::actors {
namespace {

/// More lines than that take too long to be looked at.
constexpr std::size_t kLinesMax = 8;
constexpr int kLooksATurn = 16;
/// Calls between looks in passing.
constexpr std::uint32_t kPassings = 16;
/// Calls under way to an actor: the first results are of no use without the last.
constexpr std::size_t kMuch = 64;
constexpr Duration kDoze = std::chrono::microseconds(50);
/// How often the I/O thread asks whether guests still come.
constexpr Duration kTick = std::chrono::milliseconds(1);

/// Another core may be doing what is waited for.
bool has_cores() {
  static const bool several = [] {
    cpu_set_t cores;
    return sched_getaffinity(0, sizeof cores, &cores) != 0 || CPU_COUNT(&cores) > 1;
  }();
  return several;
}

void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

int poll_for(std::span<pollfd> waits, Duration time) {
  const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(std::max(time, Duration::zero())).count();
  const timespec most{ns / 1'000'000'000, ns % 1'000'000'000};
  return ::ppoll(waits.data(), waits.size(), &most, nullptr);
}

}  // namespace

/// Whether it came in the time of one look. Whoever is ready to run goes first.
bool Client::look(Guest& guest, channel::Lines::Watch& watch, const std::function<bool()>& there) {
  const Instant end = steady_now() + Looking::kTime;
  bool came = false;
  while (true) {
    for (int i = 0; i < kLooksATurn && !came; ++i) {
      watch.look();
      came = there();
      pause();
    }
    if (came || steady_now() >= end) break;
    if (lines_turn_.is_wanted()) return false;  // Nobody knows whether it would have come.
    sched_yield();
  }
  guest.looking.on_looked(came);
  return came;
}

/// Sleeps until somebody calls wake(), or the owner has had its turn; or for a while.
void Client::sleep_as_guest(std::span<pollfd> waits, OwnersTurn::Turn& turn, Duration time,
                            const std::function<bool()>& there) {
  guest_sleeps_ = true;  // Whoever has made it so, or wants the turn, sees this, or it is seen here.
  if (!there() && !lines_turn_.is_wanted()) (void)poll_for(waits, time);
  guest_sleeps_ = false;
  std::uint64_t count = 0;
  if (waits[0].revents != 0) [[maybe_unused]]
    const auto got = ::read(guest_bell_.get(), &count, sizeof count);
  if (!lines_turn_.is_wanted()) return;
  turn.end();
  turn = lines_turn_.borrow_after_owner();
}

/// While much is under way: not woken for each that comes.
bool Client::doze(OwnersTurn::Turn& turn, Instant until, const std::function<bool()>& there,
                  const std::function<bool()>& is_much) {
  auto watch = lines_->watch_out(kLinesMax);
  if (watch.empty()) return false;
  while (is_much()) {
    watch.look();
    if (there()) {
      if (led_) watch.leave();
      return true;
    }
    if (steady_now() >= until) return false;
    std::array<pollfd, 1> waits{{{guest_bell_.get(), POLLIN, 0}}};
    sleep_as_guest(waits, turn, kDoze, there);
  }
  return false;
}

/// The lines rest on their bells.
bool Client::sleep_on_lines(OwnersTurn::Turn& turn, Instant until, const std::function<bool()>& there) {
  while (true) {
    std::array<pollfd, 2> waits{{{guest_bell_.get(), POLLIN, 0}, {lines_->descriptor(), POLLIN, 0}}};
    sleep_as_guest(waits, turn, until - steady_now(), there);
    if (waits[1].revents != 0) lines_->serve();
    if (there()) return true;
    if (steady_now() >= until) return false;
  }
}

bool Client::wait_as_guest(Guest& guest, OwnersTurn::Turn turn, Instant until, const std::function<bool()>& there,
                           const std::function<bool()>& is_much) {
  const Instant began = steady_now();
  const auto called = called_;
  ++visits_;
  bool came = false;
  if (is_much) came = doze(turn, until, there, is_much);
  if (!came && guest.looking.pays()) {
    auto watch = (lines_.get()->*guest.watch)(kLinesMax);
    if (!watch.empty()) came = look(guest, watch, there);
    if (came && led_) watch.leave();
  }
  came = came || sleep_on_lines(turn, until, there);
  ++visits_;
  guest.steadiness.on_waited(came, began, steady_now());
  if (!came && led_.exchange(false)) {  // It may not come for long.
    lines_->rest();
    outbox_->notify();
  }
  if (guest.steadiness) lead();
  if (!led_ && called_ - called > 1) outbox_->notify();  // It looks after calls that wait for others.
  return came;
}

bool Client::look_for(const PendingResult& result) {
  if (!lines_ || result.local() || !has_cores() || process::this_process() != pid_) return false;
  auto turn = lines_turn_.borrow();
  if (!turn) return false;
  {
    std::lock_guard lock(mutex_);
    const auto line = line_to_.find(result.actor());
    const bool comes_by_line = result.actor().value == 0
                                   ? !task_lines_.empty()
                                   : line != line_to_.end() && line->second.state == Line::State::open;
    if (!comes_by_line) return false;
  }
  return wait_as_guest(
      for_results_, std::move(turn), steady_now() + kTime, [&] { return result.ready(); },
      [&] {
        std::lock_guard lock(mutex_);
        return windows_.under_way(result.actor()) >= kMuch;
      });
}

bool Client::look_for_work(const std::function<bool()>& there, std::optional<Instant> until) {
  if (!lines_ || !has_cores() || process::this_process() != pid_) return false;
  auto turn = lines_turn_.borrow();
  if (!turn) return false;
  const Instant longest = steady_now() + kTime;
  return wait_as_guest(for_work_, std::move(turn), until ? std::min(*until, longest) : longest, there, {});
}

/// Of a thread that calls again and again: nobody else may be looking at its lines.
void Client::look_in_passing() {
  if (!led_.load(std::memory_order_relaxed) || process::this_process() != pid_) return;
  if (passings_.fetch_add(1, std::memory_order_relaxed) % kPassings != 0) return;
  const auto turn = lines_turn_.borrow();
  if (!turn || !led_) return;
  auto watch = lines_->watch_out(kLinesMax);
  if (watch.empty()) return;
  ++visits_;
  watch.look();
  watch.leave();
  const Instant now = steady_now();
  for_results_.steadiness.on_waited(true, now, now);
}

void Client::will_look_for_work() {
  if (!lines_ || !has_cores() || process::this_process() != pid_) return;
  ++visits_;
  lead();
}

/// The I/O thread is to leave the lines to guests, unless it is to wake other threads for what comes.
void Client::lead() {
  if (sleepers_ == 0 && may_lead_ && !led_ && !led_.exchange(true)) outbox_->notify();
}

void Client::wake() {
  if (!guest_sleeps_) return;
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto rung = ::write(guest_bell_.get(), &one, sizeof one);
}

void Client::sleeps(bool begins) {
  sleepers_ += begins ? 1 : -1;
  if (begins && led_) outbox_->notify();
}

/// From guests that come no more, or while other threads sleep for what comes by lines. In its turn.
bool Client::take_lines_back(Instant now) {
  const bool asks = now - asked_ >= kTick;
  const bool came = visits_ != visits_seen_;
  if (asks) {
    asked_ = now;
    visits_seen_ = visits_;
  }
  if (sleepers_ == 0 && (came || !asks)) {
    if (asks) lines_->serve();
    return false;
  }
  led_ = false;
  lines_->rest();
  return true;
}

/// Without its turn, in which it is again afterwards. Where guests lead, it asks now and then whether they still do.
OwnersTurn::Turn Client::sleep(std::span<pollfd, 4> waits, Duration timeout, OwnersTurn::Turn turn) {
  const Instant until = steady_now() + timeout;
  while (true) {
    const bool led = led_;
    waits[3].fd = lines_ && !led ? lines_->descriptor() : -1;
    turn.end();
    const Duration left = std::max(until - steady_now(), Duration::zero());
    const bool over = poll_for(waits, led ? std::min(left, kTick) : left) != 0 || !led || left <= kTick;
    turn = over ? lines_turn_.take([this] { wake(); }) : lines_turn_.borrow();
    const bool back = turn && led && take_lines_back(steady_now());
    if (over || back) return turn;
  }
}

}  // namespace paceline::actors
