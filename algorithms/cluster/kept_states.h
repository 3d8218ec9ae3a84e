#pragma once

#include <map>
#include <utility>

#include "runtime/base/ids.h"
#include "runtime/base/result.h"
#include "runtime/process/fd.h"
#include "runtime/store/shared_memory.h"

namespace paceline::cluster {

/// The durable state (actors/durable/durable_state.h) of this node's actors, by their descriptors: the memory lives as
/// long as one is open, whatever happens to an actor's process. One an actor. Owned by the control loop.
class KeptStates {
 public:
  /// `invalid`: no memory whose size is sealed, or the actor has some already.
  Result<void> keep(ActorId actor, process::Fd fd) {
    if (!store::is_size_sealed(fd))
      return fail(ErrorKind::invalid, "what is to be kept is no memory whose size is sealed");
    if (!states_.try_emplace(actor, std::move(fd)).second)
      return fail(ErrorKind::invalid, "something is kept of this actor already");
    return {};
  }
  /// nullptr: nothing is kept.
  const process::Fd* find(ActorId actor) const {
    const auto found = states_.find(actor);
    return found == states_.end() ? nullptr : &found->second;
  }
  /// Its memory goes with the descriptor, which may take a while. Empty: nothing was kept.
  process::Fd forget(ActorId actor) {
    auto found = states_.extract(actor);
    return found.empty() ? process::Fd() : std::move(found.mapped());
  }
  std::size_t size() const { return states_.size(); }

 private:
  std::map<ActorId, process::Fd> states_;
};

}  // namespace paceline::cluster
