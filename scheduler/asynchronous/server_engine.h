#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/asynchronous/clock_bound.h"

namespace paceline::scheduler {

/// What multiplies a step that is pushed to an asynchronous parameter server.
enum class PushScale {
  one,
  workers,    ///< 1/P.
  staleness,  ///< 1/max(1, pushes of others since the worker pulled).
};

/// Decides, where the model of an asynchronous parameter server is, what a push weighs and who may pull after it.
/// Sans-I/O; the order of the calls is the order of the pushes.
class ServerEngine {
 public:
  struct Options {
    std::int32_t workers = 1;
    std::optional<std::int64_t> bound = {};  ///< Iterations that a worker may be ahead of the slowest.
    PushScale scale = PushScale::one;
  };
  struct Push {
    double scale;
    std::int64_t staleness;  ///< Pushes since the worker pulled, all of others.
  };

  explicit ServerEngine(Options options)
      : options_(options),
        clocks_(options.workers, options.bound),
        pulled_at_(static_cast<std::size_t>(options.workers), 0) {}

  Push on_push(Rank rank) {
    const std::int64_t staleness = pushes_++ - pulled_at_[static_cast<std::size_t>(rank.value)];
    return {scale(staleness), staleness};
  }
  /// After its push, `last` if it does no other. Returns all who may pull now, in order of their ranks.
  std::vector<Rank> on_done(Rank rank, bool last) { return last ? clocks_.on_gone(rank) : clocks_.on_done(rank); }
  /// Another server has had so many of its pushes.
  void resume(Rank rank, std::int64_t pushes) { clocks_.resume(rank, pushes); }
  /// Its last push was made to another server, which has not let it pull. As on_done.
  std::vector<Rank> on_back(Rank rank, bool last) { return last ? clocks_.on_gone(rank) : clocks_.on_back(rank); }
  void on_pull(Rank rank) { pulled_at_[static_cast<std::size_t>(rank.value)] = pushes_; }
  /// It has ended: nobody waits for it. Returns who may pull now.
  std::vector<Rank> on_gone(Rank rank) { return clocks_.on_gone(rank); }
  /// Whom those who wait for the bound wait for.
  std::vector<Rank> slowest() const { return clocks_.slowest(); }
  /// Equal for those that will answer alike. For tests that walk states.
  std::string fingerprint() const {
    std::string text = clocks_.fingerprint() + '/' + std::to_string(pushes_);
    for (const std::int64_t at : pulled_at_) text += ',' + std::to_string(at);
    return text;
  }

 private:
  double scale(std::int64_t staleness) const {
    switch (options_.scale) {
      case PushScale::one: break;
      case PushScale::workers: return 1 / static_cast<double>(options_.workers);
      case PushScale::staleness: return 1 / static_cast<double>(std::max<std::int64_t>(1, staleness));
    }
    return 1;
  }

  Options options_;
  ClockBound clocks_;
  std::int64_t pushes_ = 0;
  std::vector<std::int64_t> pulled_at_;
};

}  // namespace paceline::scheduler
