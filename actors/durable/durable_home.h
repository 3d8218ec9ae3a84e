#pragma once

#include "actors/durable/durable_state.h"

namespace paceline::actors {

/// Where what is durable belongs that is made on an actor's thread.
class DurableHome {
 public:
  virtual ~DurableHome() = default;
  /// The actor's state, made for, or given back to, its first durable member. `invalid` where none can be.
  virtual Result<DurableState*> state() = 0;
  /// The actor has some.
  virtual bool is_in_use() const = 0;
};

/// Of the calling thread; null: what is durable there is an object like others.
DurableHome* durable_home();
void set_durable_home(DurableHome* home);

}  // namespace paceline::actors
