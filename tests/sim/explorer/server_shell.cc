#include "tests/sim/explorer/server_shell.h"

#include <algorithm>
#include <utility>

namespace paceline::explorer {
namespace {

using Does = ServerWorker::Phase;
using Says = ServerMessage::Kind;

constexpr NodeId kServer{0};

bool computes(const ServerWorker& w) { return !w.dead && (w.phase == Does::before || w.phase == Does::computing); }

}  // namespace

ServerShell::ServerShell(ServerModel model, ServerMutation mutation)
    : ClusterShell(model, mutation), model_(std::move(model)) {}

ServerState ServerShell::start() const {
  ServerState s;
  s.agents.resize(static_cast<std::size_t>(model_.nodes));
  s.workers.resize(model_.node_of.size());
  s.engine = std::make_shared<Told<ServerEngine>>(ServerEngine({workers(), model_.bound}));
  start_network(s);
  return s;
}

std::vector<ClusterMove> ServerShell::steps(const ServerState& s) const {
  std::vector<Move> all;
  for (int i = 0; i < workers(); ++i) {
    const Rank rank{i};
    const ServerWorker& w = worker(s, rank);
    if (w.dead) continue;
    if (!w.paused && w.phase == Does::before) all.push_back({Kind::begin, i});
    if (!w.paused && w.phase == Does::computing) all.push_back({Kind::arrive, i});
    if (!w.paused || !computes(w)) continue;
    if (is_awaited(s, rank)) all.push_back({Kind::pass_over, i});
    if (node(rank) != kServer && is_slowest(s, rank) && !w.complained) all.push_back({Kind::complain, i});
  }
  add_steps(s, all);
  return all;
}

/// Somebody waits for the bound.
bool ServerShell::is_slowest(const ServerState& s, Rank rank) const {
  const auto slowest = s.engine->engine.slowest();
  return !s.waiting.empty() && std::find(slowest.begin(), slowest.end(), rank) != slowest.end();
}

bool ServerShell::is_awaited(const ServerState& s, Rank rank) const {
  const ServerAgent& a = agent(s, node(rank));
  return !a.ended.empty() || !a.done.empty() || a.awaited.contains(rank) ||
         (node(rank) == kServer && is_slowest(s, rank));
}

void ServerShell::make(ServerState& s, const Move& move) {
  if (make_of_cluster(s, move)) return;
  const Rank rank{move.who};
  ServerWorker& w = worker(s, rank);
  switch (move.kind) {
    case Kind::begin: return begin(s, rank);
    case Kind::arrive: return arrive(s, rank);
    case Kind::complain:
      w.complained = true;
      if (mutation_ == ServerMutation::complains_to_nobody) return;
      return send(s, kServer, node(rank), ServerMessage{Says::awaited, rank});
    case Kind::pass_over: return die(s, rank);
    default: return;
  }
}

// An iteration
// --------------------------------------------------------------------------------------------------------------------

void ServerShell::begin(ServerState& s, Rank rank) {
  worker(s, rank).phase = Does::computing;
  if (std::exchange(agent(s, node(rank)).has_start, true) || node(rank) == kServer) return;
  send(s, node(rank), kServer, ServerMessage{Says::start, rank});
}

void ServerShell::arrive(ServerState& s, Rank rank) {
  ServerWorker& w = worker(s, rank);
  w.phase = Does::waiting;
  ServerAgent& a = agent(s, node(rank));
  a.awaited.erase(rank);
  if (node(rank) == kServer) return on_push(s, rank, w.t);
  a.work.push_back({std::pair(rank, w.t), {}, true});
}

void ServerShell::take(ServerState& s, NodeId to, const ServerMessage& m) {
  ServerAgent& a = agent(s, to);
  switch (m.kind) {
    case Says::start: a.has_start = true; return;
    case Says::push: return on_push(s, m.rank, m.version);
    case Says::pull: a.work.push_back({{}, {m.rank}}); return;
    case Says::gone: return on_rank_gone(s, m.rank);
    case Says::awaited: a.awaited.insert(m.rank); return;
    case Says::done: a.done.insert(node(m.rank)); return look_at_end(s, to);
  }
}

void ServerShell::on_push(ServerState& s, Rank rank, Version t) {
  if (s.gone.contains(rank)) return;
  expect(agent(s, kServer).has_start, "a push comes before there is a model");
  const bool is_last = t >= model_.last;
  auto served = tell(s.engine, [&](ServerEngine& e) {
    (void)e.on_push(rank);
    auto free = e.on_done(rank, is_last);
    if (is_last) free.push_back(rank);
    for (const Rank each : free) e.on_pull(each);
    return free;
  });
  s.pushed[rank] = t;
  s.waiting.insert(rank);
  if (!s.waiting.empty() && spoils(s, ServerMutation::lets_all_pull)) served.assign(s.waiting.begin(), s.waiting.end());
  for (const Rank each : served) check_bound(s, each);
  serve(s, std::pair(rank, t), std::move(served));
}

void ServerShell::serve(ServerState& s, std::optional<std::pair<Rank, Version>> push, std::vector<Rank> served) {
  for (const Rank each : served) s.waiting.erase(each);
  agent(s, kServer).work.push_back({push, std::move(served)});
  if (push && spoils(s, ServerMutation::adds_a_push_twice)) agent(s, kServer).work.push_back({push});
}

void ServerShell::work(ServerState& s, NodeId id) {
  ServerAgent& a = agent(s, id);
  const ServerAgent::Work work = a.work.front();
  a.work.erase(a.work.begin());
  if (work.sends) {
    if (!spoils(s, ServerMutation::loses_a_push))
      send(s, id, kServer, ServerMessage{Says::push, work.push->first, work.push->second});
    return;
  }
  if (work.push)
    expect(s.applied.insert(*work.push).second, "a push of worker " + to_string(work.push->first) + " counts twice");
  for (const Rank rank : work.served) {
    if (node(rank) == id) {
      deliver_model(s, rank);
    } else if (!s.gone.contains(rank)) {
      send(s, id, node(rank), ServerMessage{Says::pull, rank, s.pushed.at(rank)});
    }
  }
  look_at_end(s, id);
}

void ServerShell::deliver_model(ServerState& s, Rank rank) {
  ServerWorker& w = worker(s, rank);
  if (w.dead) return;
  const std::string who = "worker " + to_string(rank) + " ";
  expect(w.phase == Does::waiting, who + "gets a model that it does not wait for");
  expect(s.applied.contains({rank, w.t}), who + "gets a model without its own push");
  w.phase = w.t >= model_.last ? Does::over : Does::computing;
  w.t = w.t.next();
  w.complained = false;
  if (w.phase == Does::over) agent(s, node(rank)).ended.insert(rank);
  look_at_end(s, node(rank));
}

/// Who goes on is no further ahead of any that is left and has not done all than the bound allows.
void ServerShell::check_bound(const ServerState& s, Rank rank) {
  if (!model_.bound || s.pushed.at(rank) >= model_.last) return;
  for (int i = 0; i < workers(); ++i) {
    const auto pushed = s.pushed.find(Rank{i});
    const Version other = pushed == s.pushed.end() ? Version{-1} : pushed->second;
    if (s.gone.contains(Rank{i}) || other >= model_.last) continue;
    expect(s.pushed.at(rank).value - other.value <= *model_.bound,
           "worker " + to_string(rank) + " is further ahead of worker " + std::to_string(i) + " than the bound");
  }
}

// Who is gone, and the end
// ---------------------------------------------------------------------------------------------------------------------

void ServerShell::on_rank_gone(ServerState& s, Rank rank) {
  if (!s.gone.insert(rank).second) return;
  s.waiting.erase(rank);
  auto served = tell(s.engine, [&](ServerEngine& e) {
    auto free = e.on_gone(rank);
    for (const Rank each : free) e.on_pull(each);
    return free;
  });
  for (const Rank each : served) check_bound(s, each);
  if (!served.empty()) serve(s, {}, std::move(served));
}

void ServerShell::die(ServerState& s, Rank rank) {
  worker(s, rank).dead = true;
  agent(s, node(rank)).ended.erase(rank);
  if (node(rank) == kServer) {
    on_rank_gone(s, rank);
  } else if (!spoils(s, ServerMutation::forgets_the_dead_elsewhere)) {
    send(s, node(rank), kServer, ServerMessage{Says::gone, rank});
  }
  look_at_end(s, node(rank));
}

void ServerShell::end_last(ServerState& s) {
  agent(s, last()).work.clear();
  for (int i = 0; i < workers(); ++i)
    if (node(Rank{i}) == last()) worker(s, Rank{i}).dead = true;
}

void ServerShell::go_on_without(ServerState& s, NodeId self) {
  for (int i = 0; i < workers() && self == kServer; ++i)
    if (node(Rank{i}) == last()) on_rank_gone(s, Rank{i});
  look_at_end(s, self);
}

/// The model that all get in the end has all that those who are left have pushed.
void ServerShell::look_at_end(ServerState& s, NodeId id) {
  ServerAgent& a = agent(s, id);
  if (a.gathered) return;
  for (int i = 0; i < workers(); ++i)
    if (node(Rank{i}) == id && !worker(s, Rank{i}).dead && !a.ended.contains(Rank{i})) return;
  const auto nodes = others(s, id);
  if (!std::exchange(a.told, true)) {
    Rank own{0};
    while (node(own) != id) ++own.value;
    for (const NodeId to : nodes) send(s, id, to, ServerMessage{Says::done, own});
  }
  a.gathered = std::all_of(nodes.begin(), nodes.end(), [&](NodeId other) { return a.done.contains(other); });
  if (!a.gathered || id != kServer) return;
  for (int i = 0; i < workers(); ++i) {
    for (Version t{0}; t <= model_.last && !worker(s, Rank{i}).dead && !may_be_lost(i); t = t.next())
      expect(s.applied.contains({Rank{i}, t}), "a push of worker " + std::to_string(i) + " is not in the last model");
  }
}

void ServerShell::check_end(const ServerState& s) {
  bool somebody_rests = false;
  for (int i = 0; i < workers(); ++i) {
    const ServerWorker& w = worker(s, Rank{i});
    const bool rests = w.paused && !w.dead;
    somebody_rests = somebody_rests || rests;
    expect(w.dead || rests || w.phase == Does::over || is_of_lost(s, i),
           "worker " + std::to_string(i) + " waits for ever at iteration " + to_string(w.t));
  }
  check_views(s);
  if (somebody_rests) return;
  for (std::int32_t n = 0; n < model_.nodes; ++n)
    expect((s.network.lost && NodeId{n} == last()) || agent(s, NodeId{n}).gathered,
           "agent " + std::to_string(n) + " never comes to the end");
}

}  // namespace paceline::explorer
