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
constexpr std::size_t kLinesMax = 16;
constexpr int kLooksATurn = 16;
/// Calls between looks in passing.
constexpr std::uint32_t kPassings = 16;
/// Calls under way to an actor: the first results are of no use without the last.
constexpr std::size_t kMuch = 64;
constexpr Duration kDoze = std::chrono::microseconds(50);
/// How often the I/O thread asks whether guests still come.
constexpr Duration kTick = std::chrono::milliseconds(1);
constexpr int kTriesOfTick = 8;

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

/// Sleeps until somebody calls wake(), or the owner wants the turn; or for a while.
void Client::sleep_as_guest(std::span<pollfd> waits, Duration time, const std::function<bool()>& there) {
  guest_sleeps_ = true;  // Whoever has made it so, or wants the turn, sees this, or it is seen here.
  if (!there() && !lines_turn_.is_wanted()) (void)poll_for(waits, time);
  guest_sleeps_ = false;
  std::uint64_t count = 0;
  if (waits[0].revents != 0) [[maybe_unused]]
    const auto got = ::read(guest_bell_.get(), &count, sizeof count);
}

/// Where the owner wants the turn; the lines rest. False: another guest has it now.
bool Client::give_way(OwnersTurn::Turn& turn) {
  if (!lines_turn_.is_wanted()) return true;
  turn.end();
  turn = lines_turn_.borrow_after_owner();
  return static_cast<bool>(turn);
}

/// While much is under way: not woken for each that comes.
bool Client::doze(OwnersTurn::Turn& turn, Instant until, const std::function<bool()>& there,
                  const std::function<bool()>& is_much) {
  do {
    auto watch = lines_->watch(kLinesMax);
    if (watch.empty()) return false;
    while (!lines_turn_.is_wanted()) {
      watch.look();
      if (there()) {
        if (led_) watch.leave();
        return true;
      }
      if (steady_now() >= until || !is_much()) return false;
      std::array<pollfd, 1> waits{{{guest_bell_.get(), POLLIN, 0}}};
      sleep_as_guest(waits, kDoze, there);
    }
  } while (give_way(turn));
  return there();
}

bool Client::sleep_on_lines(OwnersTurn::Turn& turn, Instant until, const std::function<bool()>& there) {
  lines_->rest();
  while (true) {
    std::array<pollfd, 2> waits{{{guest_bell_.get(), POLLIN, 0}, {lines_->descriptor(), POLLIN, 0}}};
    sleep_as_guest(waits, until - steady_now(), there);
    if (!give_way(turn)) return there();
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
  bool came = is_much && doze(turn, until, there, is_much);
  if (turn && !came && guest.looking.pays()) {
    auto watch = lines_->watch(kLinesMax);
    if (!watch.empty()) came = look(guest, watch, there);
    if (came && led_) watch.leave();
  }
  if (turn && !came) came = sleep_on_lines(turn, until, there);
  if (!turn) return came;
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

/// There are lines, in this process, and another core may do meanwhile what is waited for.
bool Client::may_be_guest() const { return lines_ && has_cores() && process::this_process() == pid_; }

bool Client::look_for(const PendingResult& result) {
  if (result.local() || !may_be_guest()) return false;
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
  if (!may_be_guest()) return false;
  auto turn = lines_turn_.borrow();
  if (!turn) return false;
  const Instant longest = steady_now() + kTime;
  return wait_as_guest(for_work_, std::move(turn), until ? std::min(*until, longest) : longest, there, {});
}

/// Of a thread that calls again and again: nobody else may be looking at its lines.
void Client::look_in_passing() {
  if (!led_.load(std::memory_order_relaxed) || process::this_process() != pid_) return;
  if (passings_.fetch_add(1, std::memory_order_relaxed) % kPassings == 0) look_on_the_way(for_results_);
}

void Client::look_between_calls() {
  if (!may_be_guest()) return;
  led_ ? look_on_the_way(for_work_) : lead();
}

void Client::look_on_the_way(Guest& guest) {
  const auto turn = lines_turn_.borrow();
  if (!turn || !led_) return;
  auto watch = lines_->watch(kLinesMax);
  if (watch.empty()) return;
  ++visits_;
  watch.look();
  watch.leave();
  const Instant now = steady_now();
  guest.steadiness.on_waited(true, now, now);
}

void Client::work_is_for_many() {
  may_lead_ = false;
  outbox_->notify();
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
void Client::take_lines_back(Instant now) {
  const bool asks = now - asked_ >= kTick;
  const bool came = visits_ != visits_seen_;
  if (asks) {
    asked_ = now;
    visits_seen_ = visits_;
    lines_->serve();  // New ones, and those that have ended.
  }
  if (sleepers_ == 0 && may_lead_ && (came || !asks)) return;
  led_ = false;
  lines_->rest();
}

/// Without its turn, in which it is again afterwards. Where guests lead, for a moment at most.
OwnersTurn::Turn Client::sleep(std::span<pollfd, 4> waits, Duration timeout, OwnersTurn::Turn turn) {
  const bool led = led_;
  waits[3].fd = lines_ && !led ? lines_->descriptor() : -1;
  turn.end();
  const auto wake_guest = [this] { wake(); };
  if (!led) {
    (void)poll_for(waits, timeout);
    return lines_turn_.take(wake_guest);
  }
  // A guest that has the lines just now looks after them.
  for (int i = 0; i < kTriesOfTick && !turn; ++i) {
    if (poll_for(waits, std::min(timeout, kTick)) != 0) break;
    turn = lines_turn_.borrow();
  }
  if (!turn) turn = lines_turn_.take(wake_guest);
  take_lines_back(steady_now());
  return turn;
}

}  // namespace paceline::actors
