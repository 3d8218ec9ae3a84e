#include "runtime/process/descriptor_channel.h"

#include <algorithm>
#include <chrono>

#include "runtime/base/steady_now.h"
#include "runtime/process/supervise.h"

namespace paceline::process {

DescriptorChannel::Request DescriptorChannel::begin() {
  std::lock_guard lock(mutex_);
  wanted_.try_emplace(++last_);
  return Request(*this, last_);
}

void DescriptorChannel::forget(std::uint64_t number) {
  std::lock_guard lock(mutex_);
  wanted_.erase(number);
}

Result<DescriptorChannel::Answer> DescriptorChannel::wait(const Request& request, Duration timeout) {
  const Instant deadline = steady_now() + timeout;
  std::unique_lock lock(mutex_);
  for (bool looked = false;; looked = true) {
    if (auto& answer = wanted_.at(request.number())) return *std::exchange(answer, {});
    if (broken_) return tl::unexpected(*broken_);
    const Duration left = deadline - steady_now();
    if (looked && left <= Duration::zero())
      return fail(ErrorKind::timed_out, "the agent has not answered in time over a worker's Unix socket");
    reading_ ? void(read_.wait_for(lock, left)) : read(lock, left);
  }
}

/// The next packet, for whomever it is.
void DescriptorChannel::read(std::unique_lock<std::mutex>& lock, Duration timeout) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(std::max(timeout, Duration::zero()));
  reading_ = true;
  lock.unlock();
  auto packet = receive_perhaps_without_fds(socket_, static_cast<int>(left.count()));
  lock.lock();
  reading_ = false;
  auto message = packet ? decode_descriptor_message(*std::move(packet)) : tl::unexpected(std::move(packet).error());
  if (!message) {
    const auto& error = message.error();
    if (error.kind != ErrorKind::timed_out)
      broken_ = {error.kind == ErrorKind::invalid ? ErrorKind::internal : error.kind, error.text};
  } else if (const auto wanted = wanted_.find(message->request); wanted != wanted_.end()) {
    if (message->kind == Kind::answer) wanted->second = Answer{std::move(message->body), std::move(message->fds)};
    if (message->fds_lost)
      wanted->second = fail(ErrorKind::overloaded, "no descriptors left for what its agent gives (ulimit -n)");
    if (message->kind == Kind::failure) wanted->second = fail(ErrorKind::invalid, std::move(message->body));
  }
  read_.notify_all();
}

Result<DescriptorChannel::Answer> DescriptorChannel::ask(Kind kind, const std::vector<BorrowedFd>& fds,
                                                         Duration timeout) {
  const auto request = begin();
  PACELINE_TRY(send_with_fds(socket_, encode(kind, request.number(), {}, fds.size()), fds));
  return wait(request, timeout);
}

Result<void> DescriptorChannel::tell(Kind kind, std::string_view body, const std::vector<BorrowedFd>& fds) {
  return send_with_fds(socket_, encode(kind, 0, body, fds.size()), fds);
}

bool DescriptorChannel::agent_is_there() const { return !agent_gone(socket_); }

}  // namespace paceline::process
