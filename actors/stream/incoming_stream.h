#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "actors/pending_result.h"

namespace paceline::actors {

/// Values that a stream may be ahead where nothing else is said.
inline constexpr std::uint32_t kStreamAhead = 64;
/// Of values that have not been taken; one may always be on its way.
inline constexpr std::size_t kStreamBytesMax = std::size_t{64} << 20;

/// The values of a stream as they arrive at its owner, and who waits for them. Values are numbered from 1, since they
/// may come by two ways, and since a task or a call that is run again gives them again: each is handed out once, in
/// order. Any thread.
///
/// What gives them may be `ahead` values before what has been asked for; it hears of that in words (word()), of which
/// there is one every half of `ahead`, and every fourth of kStreamBytesMax. Sans-I/O: the client says what arrives, and
/// sends the words.
class IncomingStream {
 public:
  explicit IncomingStream(std::uint32_t ahead) : ahead_(ahead == 0 ? 1 : ahead) {}
  /// Nobody will ask for anything more.
  ~IncomingStream();
  IncomingStream(const IncomingStream&) = delete;
  IncomingStream& operator=(const IncomingStream&) = delete;

  /// The task or the call: set before anything arrives.
  void begin(PendingResultPtr end, std::function<void()> on_drop) {
    end_ = std::move(end);
    on_drop_ = std::move(on_drop);
  }
  /// Its result: how many values there were, or its error.
  const PendingResultPtr& end() const { return end_; }

  /// The next value, as an optional; empty once there are no more. After an error of the stream all fail with it.
  PendingResultPtr next();
  /// What next() gave was not waited for to its end: the next next() gives it.
  void put_back(PendingResultPtr asked);

  void on_item(std::uint64_t number, Bytes value);
  /// `count` values, or an error, which is handed out behind the values that have come. A count may overtake values.
  void on_end(const Result<Bytes>& count);

  /// How many values have been asked for, if what gives them is to hear it now.
  std::optional<std::uint64_t> word();

 private:
  using Completions = std::vector<std::pair<PendingResultPtr, Result<Bytes>>>;
  void serve(Completions& done);
  static void complete(Completions done);

  const std::uint32_t ahead_;
  PendingResultPtr end_;
  std::function<void()> on_drop_;

  std::mutex mutex_;
  std::map<std::uint64_t, Bytes> arrived_;  ///< Not asked for yet, by number.
  std::deque<PendingResultPtr> asked_;      ///< Without values yet, in order,
  std::deque<PendingResultPtr> back_;       ///< and those that were put back.
  std::uint64_t given_ = 0;                 ///< Values that were given to who asked.
  std::uint64_t wanted_ = 0;                ///< So often somebody asked,
  std::uint64_t told_ = 0;                  ///< and what gives the values knows of so many;
  std::size_t untold_bytes_ = 0;            ///< what was given since.
  std::optional<Result<Bytes>> over_;       ///< Empty bytes: after `count_` values.
  std::uint64_t count_ = 0;
};

}  // namespace paceline::actors
