#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "scheduler/rounds/round_engine.h"
#include "scheduler/views/view_change.h"
#include "tests/support/rounds/test_plan.h"

namespace paceline::explorer {

using scheduler::RoundEngine;

inline constexpr int kWorkersMax = 4;

/// One small job and what may befall it.
struct Model {
  std::string name;
  test::TestPlan::Answers answers;
  std::vector<NodeId> node_of;
  std::int32_t nodes = 1;
  Version last{2};
  /// What a shell carries out the moment it is asked, so that there are fewer states; the rest later, one by one.
  enum class AtOnce { nothing, seals, everything };
  AtOnce at_once = AtOnce::nothing;
  bool pause = true;         ///< One worker stands still somewhere, for some time or for good.
  bool crash = false;        ///< One worker dies somewhere.
  bool clock_runs = false;   ///< A deadline may pass at any moment; else only for somebody who is paused.
  bool parts = false;        ///< A worker may have published a part of its update when others end it.
  bool loss = false;         ///< The last agent is lost somewhere, with its workers,
  bool loses_first = false;  ///< or the first is.
  bool returns = false;      ///< Another process comes in the place of the worker that died, at some time or never.
};

/// What a member gave to a round, as the shells carry it: how far its model is, and which gradients are in it.
struct Content {
  static constexpr std::int8_t kAbsent = -9;   ///< No member, or it has left.
  static constexpr std::int8_t kNothing = -8;  ///< A member that gave nothing.
  std::int8_t tag = kAbsent;
  std::uint8_t gradients = 0;  ///< Bit v: the gradient of iteration v.

  bool operator==(const Content&) const = default;
};
using Contents = std::array<Content, kWorkersMax>;  ///< By rank.
using Key = std::pair<Version, std::int32_t>;       ///< Version, group.

/// The word that follows what is passed on of a lost agent, and that with it: the two keep their order.
struct Flushed {
  std::set<NodeId> lost;
  std::map<Key, Contents> passed_on;
};
struct Message {
  NodeId from, to;
  std::variant<RoundEngine::Activate, RoundEngine::Count, RoundEngine::Gone, RoundEngine::SendPartial, Flushed> body;
  Contents sum = {};  ///< Of a partial.
};

/// An engine that does not change, shared by all states in which it is the same: equal engines are one core.
struct Core {
  RoundEngine engine;
  NodeId self;
  std::int32_t id;
};

/// Likewise.
struct View {
  explicit View(scheduler::ViewChange that) : change(std::move(that)), fingerprint(change.fingerprint()) {}
  scheduler::ViewChange change;
  std::string fingerprint;
};

struct Agent {
  std::shared_ptr<const Core> core;
  std::vector<RoundEngine::Action> work;  ///< Averagings run one after the other.
  std::map<Key, Contents> pinned;
  std::map<Key, std::map<NodeId, Contents>> partials;
  std::set<Key> executed;            ///< Of versions that the engine has not done.
  Version abandoned{-1};             ///< The word on every control page.
  Version result{-1};                ///< Lateness abandons: the newest result that workers can take up.
  std::shared_ptr<const View> view;  ///< Where an agent is lost.
  std::map<Key, Contents> of_lost;   ///< The same: what the lost agent gave, until all have executed it.
};

struct Worker {
  enum class Phase : std::uint8_t { computing, waiting, over };
  Phase phase = Phase::computing;
  bool paused = false, dead = false, noticed = false, left = false;
  Version t{0};
  Version next_round{0};
  Content publication = {.tag = -1};
  std::vector<Version> reports;  ///< Under way to its agent.
  Version delivered{-1};         ///< The version whose mean is in its window.
  Version retained{-1};          ///< The version whose sum its agent keeps for it.
  Version merged{-1};            ///< The version that it has been merged with.
  std::uint8_t contributed = 0;  ///< Gradients that were in a round.
  std::uint8_t given_up = 0;     ///< Gradients that it has applied itself, or that are lost by intention.

  /// Another process in its place: dead until it has the state of another worker, then new until it has arrived.
  enum class Return : std::uint8_t { none, came, admitted, restored };
  Return comes_back = Return::none;
  Version after{-1};  ///< Of which version its state is to be, or was.
  bool exact = false, may_skip = false;

  bool takes_part() const { return !dead && !left; }
};

/// All there is at one moment: engines, messages under way (any of which may be next), workers, what shells have still
/// to carry out, and what the checks must remember.
struct State {
  std::vector<Agent> agents;
  std::vector<Message> network;
  std::vector<Worker> workers;
  std::map<Key, Contents> truth;  ///< What was published at the seal, until all have executed the version.
  bool pause_used = false, crash_used = false, loss_used = false, spoilt = false;
  std::map<Key, bool> counted;  ///< Whether the last agent's part is in what another one has executed.
  Duration now{};
};

/// Bytes that are equal for messages, for states, with the same futures.
std::string bytes_of(const Message& message);
std::string bytes_of(const State& state);

/// One thing that can happen next.
struct Move {
  enum class Kind : std::uint8_t {
    publish,
    part,
    report,
    take_up,
    pause,
    thaw,
    crash,
    notice,
    deliver,
    work,
    tick,
    lose,
    hear_loss,
    come_back,
    restore
  };
  Kind kind;
  int who;  ///< Worker, agent or place in the network.
};
std::string print(const Move& move);

}  // namespace paceline::explorer
