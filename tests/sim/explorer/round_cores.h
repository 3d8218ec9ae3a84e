#pragma once

#include <algorithm>
#include <array>
#include <initializer_list>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

#include "tests/sim/explorer/round_state.h"

namespace paceline::explorer {

/// What an engine is told.
enum EventKind : std::int64_t {
  kArrival,
  kGone,
  kTick,
  kActivation,
  kCount,
  kGoneElsewhere,
  kPartial,
  kSealed,
  kExecuted,
  kMerged,
  kNodeGone,
  kBackElsewhere,
  kReturn
};

/// All engines that a walk has come across, each once, and what each has answered: most states of a job differ in what
/// is under way only, so that the same engine is asked the same again and again.
class RoundCores {
 public:
  using CorePtr = std::shared_ptr<const Core>;
  using Event = std::initializer_list<std::int64_t>;  ///< All that a step depends on, beside the engine.
  struct Stepped {
    CorePtr core;
    RoundEngine::Actions actions;
  };

  CorePtr add(NodeId self, RoundEngine engine) {
    const std::string print = std::to_string(self.value) + ' ' + engine.fingerprint();
    const auto found = cores_.find(print);
    if (found != cores_.end()) return found->second;
    auto core = std::make_shared<const Core>(Core{std::move(engine), self, static_cast<std::int32_t>(cores_.size())});
    return cores_.emplace(print, std::move(core)).first->second;
  }

  template <class Step>
  const Stepped& step(const Core& from, Event event, Step&& on) {
    Key key{from.id};
    std::copy(event.begin(), event.end(), key.begin() + 1);
    const auto found = answers_.find(key);
    if (found != answers_.end()) return found->second;
    const auto& plan = static_cast<const test::TestPlan&>(from.engine.plan());
    RoundEngine engine(from.engine, std::make_unique<test::TestPlan>(plan));
    auto actions = on(engine);
    return answers_.emplace(std::move(key), Stepped{add(from.self, std::move(engine)), std::move(actions)})
        .first->second;
  }

 private:
  using Key = std::array<std::int64_t, 6>;  ///< The engine, the event.
  struct Hash {
    std::size_t operator()(const Key& key) const {
      std::size_t hash = 0;
      for (const std::int64_t number : key) hash = (hash ^ static_cast<std::size_t>(number)) * 0x9E3779B97F4A7C15U;
      return hash ^ hash >> 32U;
    }
  };

  std::unordered_map<std::string, CorePtr> cores_;
  std::unordered_map<Key, Stepped, Hash> answers_;
};

}  // namespace paceline::explorer
