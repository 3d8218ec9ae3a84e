#pragma once

#include <functional>
#include <memory>

#include "runtime/base/result.h"

namespace paceline {

/// One thread beside a control loop, for what takes long and touches nothing of the loop's: memory that is zeroed,
/// copied or given back. Owned by the loop's thread, which calls everything. Works in the order of asking; what follows
/// runs on the owner's thread.
class Background {
 public:
  /// `internal` if the thread or the eventfd cannot be had.
  static Result<std::unique_ptr<Background>> create();
  /// Finishes what is running, drops what is queued.
  ~Background();
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  /// `work` on the thread, then `follows` from take_done(), with its result, or what it threw.
  void run(std::function<Result<void>()> work, std::function<void(Result<void>)> follows);
  /// An eventfd, readable while something is done that was not taken.
  int descriptor() const;
  void take_done();

 private:
  struct State;
  explicit Background(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace paceline
