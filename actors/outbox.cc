#include "actors/outbox.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <utility>

#include "runtime/base/check.h"

namespace paceline::actors {

Outbox::Outbox() : event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  PACELINE_CHECK(event_ >= 0, "eventfd: no descriptors left");
}

Outbox::~Outbox() { ::close(event_); }

Result<void> Outbox::push(Frames message, Duration patience) {
  bool first = false;
  {
    std::unique_lock lock(mutex_);
    const auto has_room = [this] { return closed_ || messages_.size() < kMessagesMax; };
    if (!has_room() && (patience <= Duration::zero() || !room_.wait_for(lock, patience, has_room))) {
      return fail(ErrorKind::overloaded, "more than " + std::to_string(kMessagesMax) +
                                             " messages wait to be sent to the agent: wait for some results first");
    }
    if (closed_) return fail(ErrorKind::disconnected, "the connection to the agent is closed");
    first = messages_.empty();
    messages_.push_back(std::move(message));
  }
  if (first) notify();
  return {};
}

/// The first one wakes the I/O thread, which takes all.
template <class List>
void Outbox::append(List& list, typename List::value_type value) {
  {
    std::lock_guard lock(mutex_);
    if (closed_) return;
    list.push_back(std::move(value));
    if (list.size() > 1) return;
  }
  notify();
}

void Outbox::push_anyway(Frames message) { append(messages_, std::move(message)); }

void Outbox::release(ActorId actor) { append(release_.actors, actor); }

void Outbox::drop_stream(PendingResultPtr end) { append(dropped_, std::move(end)); }

std::optional<Outbox::Frames> Outbox::take() {
  std::lock_guard lock(mutex_);
  if (messages_.empty()) return std::nullopt;
  auto message = std::move(messages_.front());
  messages_.pop_front();
  room_.notify_one();
  return message;
}

std::optional<Release> Outbox::take_release() {
  std::lock_guard lock(mutex_);
  if (release_.actors.empty()) return std::nullopt;
  return std::exchange(release_, {});
}

std::vector<PendingResultPtr> Outbox::take_dropped() {
  std::lock_guard lock(mutex_);
  return std::exchange(dropped_, {});
}

void Outbox::close() {
  {
    std::lock_guard lock(mutex_);
    closed_ = true;
  }
  room_.notify_all();
  notify();
}

void Outbox::notify() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(event_, &one, sizeof one);  // Full counter: it is readable anyway.
}

void Outbox::take_notice() {
  std::uint64_t count = 0;
  [[maybe_unused]] const auto got = ::read(event_, &count, sizeof count);
}

}  // namespace paceline::actors
