#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "actors/durable/durable_home.h"
#include "actors/protocol.h"
#include "runtime/process/fd.h"

namespace paceline::worker {

/// Who keeps an actor's durable state while it has no process.
struct StateKeeper {
  std::function<Result<process::Fd>()> find;              ///< What a process before this one has given; none: empty.
  std::function<Result<void>(process::BorrowedFd)> keep;  ///< Returns when it is kept.
};

/// The durable state of a worker's actor, from its constructor on, and its calls around it. Owned by the actor's
/// thread.
class DurableActor final : public actors::DurableHome {
 public:
  /// From here on it is the home of what this thread makes.
  DurableActor(StateKeeper keeper, const actors::CreateActor& create);
  ~DurableActor() override;
  DurableActor(const DurableActor&) = delete;
  DurableActor& operator=(const DurableActor&) = delete;

  Result<actors::DurableState*> state() override;
  bool is_in_use() const override { return state_ != nullptr; }

  /// The constructor has returned.
  Result<void> finish();
  /// Of a call that was sent again: what it was answered, if an earlier process has done it.
  std::optional<Result<Bytes>> answered(const actors::Call& call) const;
  /// The call is over: what it has changed, and its answer, count. What it is to be answered: why not, else `answer`.
  Result<Bytes> publish(const actors::Call& call, Result<Bytes> answer);

 private:
  Result<void> store(const actors::Call& call, const Result<Bytes>& answer);

  StateKeeper keeper_;
  const bool is_asked_again_;  ///< Calls may be sent again.
  const bool is_one_at_a_time_;
  std::unique_ptr<actors::DurableState> state_;
  bool restored_ = false;
  bool constructed_ = false;
};

}  // namespace paceline::worker
