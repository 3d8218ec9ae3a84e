#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "actors/invoke.h"
#include "actors/spans/span_memory.h"
#include "runtime/base/ids.h"
#include "runtime/base/instant.h"
#include "runtime/process/fd.h"
#include "runtime/store/mapping.h"

namespace paceline::actors {

struct Call;

/// A worker's SpanMemory, written by its threads. Lives as long as they do.
class SpanBook {
 public:
  static Result<std::unique_ptr<SpanBook>> create();
  SpanBook(const SpanBook&) = delete;
  SpanBook& operator=(const SpanBook&) = delete;

  /// For the agent.
  process::BorrowedFd fd() const { return fd_; }
  /// The id of a name, which is written once; 0 where there is no room for it among the first `room` bytes of names.
  /// What is longer than kNameMax is cut.
  std::uint32_t name(NameKind kind, std::string_view text, std::size_t room = kNamesBytes);

 private:
  friend class SpanTrack;
  SpanBook(process::Fd fd, store::Mapping mapping)
      : fd_(std::move(fd)), mapping_(std::move(mapping)), memory_(reinterpret_cast<SpanMemory*>(mapping_.data())) {}

  process::Fd fd_;
  store::Mapping mapping_;
  SpanMemory* const memory_;
  std::atomic<std::uint32_t> tracks_{0};
  std::mutex mutex_;                            ///< Guards what follows.
  std::map<std::string, std::uint32_t> known_;  ///< By kind and text.
};

/// What one thread of a worker says of the calls that it runs, one after the other. No allocation, lock or system call
/// but for names that it has not met.
class SpanTrack final : public CallWatch {
 public:
  /// Names that programs make up leave the rest to what C++ calls things.
  static constexpr std::size_t kTaskNamesBytes = kNamesBytes / 4 * 3;

  /// Beyond kRunningMax tracks only what is over is written.
  explicit SpanTrack(SpanBook& book);

  void begin(const Call& call, Instant now);
  /// `name`: of something that is no call.
  void begin(std::string_view name, const std::string& owner, Instant now);
  void begins(const CalleeKind& kind, const Bytes& first, std::string_view build) override;
  /// The call that was begun last is over.
  void end(Instant now, bool failed) { end(take(), now, failed); }
  /// The call that was begun last is a coroutine, and others may run on this thread until it ends.
  SpanRecord leave();
  void end(SpanRecord span, Instant now, bool failed);

 private:
  /// A name by a hash of what it is of.
  struct Known {
    std::uint64_t hash = 0;
    std::uint32_t name = 0;
  };
  Known* known(std::uint64_t hash) { return &known_[hash % known_.size()]; }
  std::uint32_t text(std::string_view text, std::size_t room = kNamesBytes);
  void show();
  SpanRecord take();

  SpanBook& book_;
  const std::uint32_t thread_;
  SpanSlot* const slot_;  ///< Of what runs; may be null.
  SpanRecord now_{};
  std::uint64_t begun_ = 0;
  std::array<Known, 256> known_{};
};

}  // namespace paceline::actors
