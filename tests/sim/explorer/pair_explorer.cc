#include "tests/sim/explorer/pair_shell.h"

namespace paceline::explorer {
namespace {

using explorer::put;

void put(std::string& out, const PairValue& value) {
  put(out, value.initiator.value);
  put(out, value.version.value);
  put(out, value.steps);
}

void put(std::string& out, const PairEngine::Meeting& meeting) {
  put(out, meeting.initiator.value);
  put(out, meeting.partner.value_or(Rank{-1}).value);
}

void put(std::string& out, const PairAgent& agent) {
  out += agent.engine->print;
  put(out, static_cast<std::int64_t>(agent.work.size()));
  for (const auto& work : agent.work) {
    put(out, work.average.value_or(PairEngine::Meeting{work.initiator, {}}));
    put(out, work.visitor);
  }
  for (const auto& [rank, value] : agent.visitors) {
    put(out, rank.value);
    put(out, value);
  }
  out += 'e';
  for (const Rank rank : agent.ended) put(out, rank.value);
  out += 'd';
  for (const NodeId node : agent.done) put(out, node.value);
  out += ';';
  put(out, agent.told + 2 * agent.gathered);
}

void put(std::string& out, const PairWorker& w) {
  put(out, static_cast<int>(w.phase) + 4 * w.dead + 8 * w.paused + 16 * w.met + 32 * w.lent.has_value());
  put(out, w.t.value);
  put(out, w.model);
  if (!w.lent) return;
  put(out, w.lent->first);
  put(out, w.lent->second);
}

}  // namespace

void put(std::string& out, const PairMessage& m) {
  put(out, m.phase ? static_cast<int>(*m.phase) : -1);
  put(out, m.meeting);
  put(out, m.value);
}

std::string bytes_of(const PairState& s) {
  std::string out;
  for (const PairAgent& agent : s.agents) put(out, agent);
  put(out, s.network);
  for (const PairWorker& w : s.workers) put(out, w);
  for (const auto& [meeting, mean] : s.half) {
    put(out, PairEngine::Meeting{meeting.first, meeting.second});
    put(out, mean);
  }
  put(out, s.crash_used + 2 * s.spoilt + 4 * s.pause_used);
  return out;
}

Walk walk(const PairModel& model, PairMutation mutation) {
  PairShell shell(model, mutation);
  return walk_all(shell);
}

}  // namespace paceline::explorer
