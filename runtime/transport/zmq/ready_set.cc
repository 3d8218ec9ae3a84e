#include "runtime/transport/zmq/ready_set.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <utility>

namespace paceline::transport {
namespace {

constexpr ReadySet::Key kKickKey = std::numeric_limits<ReadySet::Key>::max();

}  // namespace

Result<ReadySet> ReadySet::create() {
  const int epoll = ::epoll_create1(EPOLL_CLOEXEC);
  if (epoll < 0) return fail_errno("epoll_create1");
  const int kick = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  ReadySet set(epoll, kick);
  if (kick < 0) return fail_errno("eventfd");
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = kKickKey;
  if (::epoll_ctl(epoll, EPOLL_CTL_ADD, kick, &event) != 0) return fail_errno("epoll_ctl");
  return set;
}

ReadySet::ReadySet(ReadySet&& other) noexcept
    : epoll_(std::exchange(other.epoll_, -1)),
      kick_(std::exchange(other.kick_, -1)),
      kicked_(other.kicked_),
      described_(other.described_),
      precise_(other.precise_),
      empty_handed_(other.empty_handed_),
      ready_(std::move(other.ready_)),
      queued_(std::move(other.queued_)) {}

ReadySet::~ReadySet() {
  if (kick_ >= 0) ::close(kick_);
  if (epoll_ >= 0) ::close(epoll_);
}

Result<void> ReadySet::add(Key key, int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = key;
  if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) != 0) return fail_errno("epoll_ctl");
  queued_[key] = false;
  touch(key);
  return {};
}

void ReadySet::remove(Key key, int fd) {
  ::epoll_ctl(epoll_, EPOLL_CTL_DEL, fd, nullptr);
  queued_.erase(key);  // take() passes over what ready_ still holds of it.
}

void ReadySet::queue(Key key) {
  const auto known = queued_.find(key);
  if (known == queued_.end() || known->second) return;
  known->second = true;
  ready_.push_back(key);
}

void ReadySet::touch(Key key) {
  queue(key);
  // While the owner still takes, it will come to this one by itself.
  if (!described_ || !empty_handed_ || kicked_) return;
  const std::uint64_t one = 1;
  kicked_ = ::write(kick_, &one, sizeof one) == sizeof one;
}

std::optional<ReadySet::Key> ReadySet::take() {
  while (!ready_.empty()) {
    const Key key = ready_.front();
    ready_.pop_front();
    const auto known = queued_.find(key);
    if (known == queued_.end()) continue;
    known->second = false;
    empty_handed_ = false;
    return key;
  }
  empty_handed_ = true;
  if (kicked_) {
    std::uint64_t count = 0;
    kicked_ = ::read(kick_, &count, sizeof count) != sizeof count;
  }
  return std::nullopt;
}

void ReadySet::collect(Duration timeout) {
  std::array<epoll_event, 64> events;
  const auto wait = std::clamp(timeout, Duration::zero(), Duration(std::chrono::hours(24)));
  int count = -1;
  errno = ENOSYS;
  if (wait == Duration::zero()) {
    count = ::epoll_wait(epoll_, events.data(), events.size(), 0);
  } else {
    if (precise_) {
      const timespec time{static_cast<std::time_t>(wait.count() / 1'000'000'000),
                          static_cast<long>(wait.count() % 1'000'000'000)};
      count = ::epoll_pwait2(epoll_, events.data(), events.size(), &time, nullptr);
      if (count < 0 && errno == ENOSYS) precise_ = false;
    }
    if (!precise_) {
      const auto rounded_up = std::chrono::ceil<std::chrono::milliseconds>(wait).count();
      count = ::epoll_wait(epoll_, events.data(), events.size(), static_cast<int>(rounded_up));
    }
  }
  for (int i = 0; i < count; ++i) queue(events[static_cast<std::size_t>(i)].data.u64);
}

int ReadySet::descriptor() {
  if (!described_) {
    described_ = true;
    if (!ready_.empty() && !kicked_) {
      const std::uint64_t one = 1;
      kicked_ = ::write(kick_, &one, sizeof one) == sizeof one;
    }
  }
  return epoll_;
}

}  // namespace paceline::transport
