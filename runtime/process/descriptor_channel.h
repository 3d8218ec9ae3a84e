#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/instant.h"
#include "runtime/base/result.h"
#include "runtime/process/descriptor_message.h"
#include "runtime/process/fd.h"

namespace paceline::process {

/// A worker's end of the socket to its agent. Any thread: of those that wait for answers one reads for all. What nobody
/// waits for any more is dropped, and its descriptors are closed.
class DescriptorChannel {
 public:
  using Kind = DescriptorMessage::Kind;
  struct Answer {
    std::string body;
    std::vector<Fd> fds;
  };
  /// A request's number, for as long as somebody wants its answer.
  class Request {
   public:
    Request(Request&& other) noexcept : channel_(std::exchange(other.channel_, nullptr)), number_(other.number_) {}
    Request& operator=(Request&& other) noexcept {
      std::swap(channel_, other.channel_);
      std::swap(number_, other.number_);
      return *this;
    }
    ~Request() {
      if (channel_ != nullptr) channel_->forget(number_);
    }
    std::uint64_t number() const { return number_; }

   private:
    friend class DescriptorChannel;
    Request(DescriptorChannel& channel, std::uint64_t number) : channel_(&channel), number_(number) {}
    DescriptorChannel* channel_;
    std::uint64_t number_;
  };

  explicit DescriptorChannel(Fd socket) : socket_(std::move(socket)) {}
  DescriptorChannel(const DescriptorChannel&) = delete;
  DescriptorChannel& operator=(const DescriptorChannel&) = delete;

  /// Of a request that goes to the agent some other way.
  Request begin();
  /// The agent's answer. `invalid`: it says why not; `timed_out`, and it may be waited for again; `disconnected`: the
  /// agent is gone; `internal`: what came is no message.
  Result<Answer> wait(const Request& request, Duration timeout);
  Result<Answer> ask(Kind kind, const std::vector<BorrowedFd>& fds, Duration timeout);
  /// What has no answer.
  Result<void> tell(Kind kind, std::string_view body, const std::vector<BorrowedFd>& fds);
  /// False once the agent has hung up.
  bool agent_is_there() const;
  BorrowedFd socket() const { return socket_; }

 private:
  void forget(std::uint64_t number);
  void read(std::unique_lock<std::mutex>& lock, Duration timeout);

  const Fd socket_;
  std::mutex mutex_;  ///< Guards what follows.
  std::condition_variable read_;
  bool reading_ = false;
  std::uint64_t last_ = 0;
  std::map<std::uint64_t, std::optional<Result<Answer>>> wanted_;
  std::optional<Error> broken_;
};

}  // namespace paceline::process
