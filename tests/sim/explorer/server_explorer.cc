#include "tests/sim/explorer/server_shell.h"

namespace paceline::explorer {
namespace {

using explorer::put;

void put(std::string& out, const std::pair<Rank, Version>& push) {
  put(out, push.first.value);
  put(out, push.second.value);
}

void put(std::string& out, const std::set<Rank>& ranks) {
  for (const Rank rank : ranks) put(out, rank.value);
  out += ';';
}

void put(std::string& out, const ServerAgent& agent) {
  put(out, static_cast<std::int64_t>(agent.work.size()));
  for (const auto& work : agent.work) {
    put(out, work.push.value_or(std::pair(Rank{-1}, Version{-1})));
    put(out, static_cast<std::int64_t>(work.served.size()) + 8 * work.sends);
    for (const Rank rank : work.served) put(out, rank.value);
  }
  put(out, agent.awaited);
  put(out, agent.ended);
  for (const NodeId node : agent.done) put(out, node.value);
  out += ';';
  put(out, agent.has_start + 2 * agent.told + 4 * agent.gathered);
}

}  // namespace

void put(std::string& out, const ServerMessage& m) {
  put(out, static_cast<int>(m.kind));
  put(out, m.rank.value);
  put(out, m.version.value);
}

std::string bytes_of(const ServerState& s) {
  std::string out = s.engine->print;
  for (const ServerAgent& agent : s.agents) put(out, agent);
  put(out, s.network);
  for (const ServerWorker& w : s.workers) {
    put(out, static_cast<int>(w.phase) + 4 * w.dead + 8 * w.paused + 16 * w.complained);
    put(out, w.t.value);
  }
  put(out, s.gone);
  put(out, s.waiting);
  for (const auto& push : s.pushed) put(out, push);
  out += '|';
  for (const auto& push : s.applied) put(out, push);
  put(out, s.crash_used + 2 * s.spoilt + 4 * s.pause_used);
  return out;
}

Walk walk(const ServerModel& model, ServerMutation mutation) {
  ServerShell shell(model, mutation);
  return walk_all(shell);
}

}  // namespace paceline::explorer
