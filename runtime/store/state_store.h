#pragma once

#include <map>
#include <string>

#include "runtime/base/result.h"

namespace paceline::store {

/// What outlives the process that writes it: texts by key. One process at a time, one thread.
class StateStore {
 public:
  using Texts = std::map<std::string, std::string>;

  virtual ~StateStore() = default;
  /// Those whose keys begin with `prefix`.
  virtual Result<Texts> read(const std::string& prefix) = 0;
  /// All or none; an empty text: the key goes. What was written is there when the process is killed at any moment.
  virtual Result<void> write(const Texts& texts) = 0;
};

/// In memory: of simulated processes, which share it with those that come after them.
class MemoryStore final : public StateStore {
 public:
  Result<Texts> read(const std::string& prefix) override;
  Result<void> write(const Texts& texts) override;
  /// A disk without room: nothing can be written.
  void fill(bool full) { full_ = full; }

 private:
  Texts texts_;
  bool full_ = false;
};

}  // namespace paceline::store
