#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/asynchronous/server_engine.h"
#include "tests/sim/explorer/cluster_shell.h"
#include "tests/sim/explorer/told.h"
#include "tests/sim/explorer/walk.h"

namespace paceline::explorer {

using scheduler::ServerEngine;

/// One small job of workers that push to agent 0 and pull from it.
struct ServerModel {
  std::string name;
  std::vector<NodeId> node_of;
  std::int32_t nodes = 2;
  std::optional<std::int64_t> bound = {};
  Version last{1};
  bool crash = false;  ///< One worker dies somewhere.
  bool pause = false;  ///< One worker stands still somewhere; where others wait for it, it may leave.
  Loss loss = Loss::none;
};

/// A defect of a shell or a network around the server engine. `harmless` ones it must bear.
enum class ServerMutation {
  none,
  loses_a_push,
  adds_a_push_twice,
  forgets_the_dead_elsewhere,
  lets_all_pull,
  complains_to_nobody,
  goes_on_waiting_for_the_lost,
  // Harmless: there is nothing to agree on
  takes_from_the_lost,
  overtakes,
  passes_nothing_on,
  does_not_wait_for_the_flush,
};

struct ServerMessage {
  enum class Kind : std::uint8_t { start, push, pull, gone, awaited, done };
  Kind kind;
  Rank rank;
  Version version = {};
};
void put(std::string& out, const ServerMessage& message);

struct ServerAgent {
  struct Work {
    std::optional<std::pair<Rank, Version>> push;  ///< What is added to the model, on agent 0.
    std::vector<Rank> served = {};                 ///< Who gets it then.
    bool sends = false;                            ///< Elsewhere: the push goes out; else what was pulled is there.
  };
  std::vector<Work> work;
  bool has_start = false;
  std::set<Rank> awaited, ended;
  std::set<NodeId> done;
  bool told = false, gathered = false;
};

struct ServerWorker {
  enum class Phase : std::uint8_t { before, computing, waiting, over };
  Phase phase = Phase::before;
  Version t{0};
  bool dead = false, paused = false, complained = false;
};

struct ServerState {
  using Body = ServerMessage;
  std::vector<ServerAgent> agents;
  Network<ServerMessage> network;
  std::vector<ServerWorker> workers;
  ToldPtr<ServerEngine> engine;
  std::set<Rank> gone, waiting;                ///< As the server knows.
  std::map<Rank, Version> pushed;              ///< The same.
  std::set<std::pair<Rank, Version>> applied;  ///< Pushes that are in the model.
  bool crash_used = false, pause_used = false, spoilt = false;
};
std::string bytes_of(const ServerState& state);

/// The shells of a model's agents, their network and the workers; holds each step against the engine's promises.
class ServerShell final : public ClusterShell<ServerState, ServerMutation> {
 public:
  ServerShell(ServerModel model, ServerMutation mutation);

  ServerState start() const;
  std::vector<Move> steps(const ServerState& s) const;
  void make(ServerState& s, const Move& move);
  /// Nothing can happen unless one that stopped wakes.
  void check_end(const ServerState& s);

 private:
  void take(ServerState& s, NodeId to, const ServerMessage& message) override;
  void work(ServerState& s, NodeId id) override;
  void end_last(ServerState& s) override;
  void pass_on(ServerState&, NodeId, NodeId) override {}
  void go_on_without(ServerState& s, NodeId self) override;

  void begin(ServerState& s, Rank rank);
  void arrive(ServerState& s, Rank rank);
  void on_push(ServerState& s, Rank rank, Version t);
  void serve(ServerState& s, std::optional<std::pair<Rank, Version>> push, std::vector<Rank> served);
  void on_rank_gone(ServerState& s, Rank rank);
  void deliver_model(ServerState& s, Rank rank);
  void die(ServerState& s, Rank rank) override;
  void look_at_end(ServerState& s, NodeId id);
  bool is_slowest(const ServerState& s, Rank rank) const;
  bool is_awaited(const ServerState& s, Rank rank) const;
  void check_bound(const ServerState& s, Rank rank);

  ServerModel model_;
};

Walk walk(const ServerModel& model, ServerMutation mutation = ServerMutation::none);

}  // namespace paceline::explorer
