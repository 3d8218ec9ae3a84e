#include "runtime/base/event_loop.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <utility>

#include "runtime/base/contained.h"
#include "runtime/base/steady_now.h"

namespace paceline {
namespace {

/// Processor time of this thread.
Duration thread_time() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace

Result<EventLoop> EventLoop::create() {
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  if (epoll < 0) return fail_errno("epoll_create1");
  return EventLoop(epoll);
}

EventLoop::EventLoop(EventLoop&& other) noexcept
    : epoll_(std::exchange(other.epoll_, -1)),
      watched_(std::move(other.watched_)),
      again_(std::move(other.again_)),
      on_error_(std::move(other.on_error_)),
      longest_(other.longest_) {}

EventLoop& EventLoop::operator=(EventLoop&& other) noexcept {
  std::swap(epoll_, other.epoll_);
  std::swap(watched_, other.watched_);
  std::swap(again_, other.again_);
  std::swap(on_error_, other.on_error_);
  std::swap(longest_, other.longest_);
  return *this;
}

EventLoop::~EventLoop() {
  if (epoll_ >= 0) close(epoll_);
}

Result<void> EventLoop::watch(int fd, std::function<void()> ready) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  const int operation = watched_.contains(fd) ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
  if (epoll_ctl(epoll_, operation, fd, &event) != 0) return fail_errno("epoll_ctl");
  watched_[fd] = std::make_shared<std::function<void()>>(std::move(ready));
  return {};
}

void EventLoop::watch_room(int fd, bool wanted) {
  if (!watched_.contains(fd)) return;
  epoll_event event{};
  event.events = wanted ? EPOLLIN | EPOLLOUT : static_cast<std::uint32_t>(EPOLLIN);
  event.data.fd = fd;
  epoll_ctl(epoll_, EPOLL_CTL_MOD, fd, &event);
}

void EventLoop::forget(int fd) {
  again_.erase(fd);
  if (watched_.erase(fd) > 0) epoll_ctl(epoll_, EPOLL_CTL_DEL, fd, nullptr);
}

Result<void> EventLoop::run_once(Duration timeout) {
  std::array<epoll_event, 64> events;
  int milliseconds = -1;
  if (timeout >= Duration::zero()) {
    // Rounded up: waking just before a deadline would spin.
    milliseconds = static_cast<int>((timeout + std::chrono::microseconds(999)) / std::chrono::milliseconds(1));
  }
  if (!again_.empty()) milliseconds = 0;
  const int count = epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), milliseconds);
  if (count < 0) {
    if (errno == EINTR) return {};
    return fail_errno("epoll_wait");
  }
  auto again = std::exchange(again_, {});
  if (count == 0 && again.empty()) return {};
  turn([&] {
    for (int i = 0; i < count; ++i) {
      const int fd = events[static_cast<std::size_t>(i)].data.fd;
      again.erase(fd);
      call(fd);
    }
    for (const int fd : again) call(fd);
  });
  return {};
}

void EventLoop::call(int fd) {
  const auto it = watched_.find(fd);
  if (it == watched_.end()) return;  // Forgotten by a callback before it.
  const auto ready = it->second;     // Kept alive: the callback may forget itself.
  const auto done = contained(*ready);
  if (done) return;
  if (on_error_) {
    on_error_(done.error());
  } else {
    std::fprintf(stderr, "paceline: %s\n", done.error().text.c_str());
  }
}

void EventLoop::turn(const std::function<void()>& what) {
  const Instant begin = steady_now();
  const Duration before = thread_time();
  what();
  longest_.wall = std::max(longest_.wall, steady_now() - begin);
  longest_.processor = std::max(longest_.processor, thread_time() - before);
}

}  // namespace paceline
