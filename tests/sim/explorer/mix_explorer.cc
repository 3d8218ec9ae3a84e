#include <cmath>

#include "tests/sim/explorer/batch_shell.h"
#include "tests/sim/explorer/mix_shell.h"

namespace paceline::explorer {
namespace {

using explorer::put;

void put(std::string& out, const Contribution& c) {
  put(out, c.first.value);
  put(out, c.second.value);
}

std::int64_t digits(double weight) { return std::llround(weight * 720720); }

void put(std::string& out, const MixAgent& agent) {
  out += agent.engine->print;
  if (agent.batches) out += agent.batches->print;
  for (const Version v : agent.heard) put(out, v.value);
  put(out, static_cast<std::int64_t>(agent.work.size()));
  for (const auto& mix : agent.work) {
    put(out, {mix.rank, mix.version});
    for (const Share& share : mix.row) put(out, share.from.value);
    for (const Share& share : mix.row) put(out, digits(share.weight));
  }
  for (const auto& c : agent.held) put(out, c);
  out += 'g';
  for (const auto& [rank, end] : agent.gone) put(out, end);
  out += 'u';
  for (const auto& c : agent.used) put(out, c);
  for (const auto& [node, v] : agent.given) put(out, {Rank{node.value}, v});
  out += 'b';
  put(out, agent.over.value);
  for (const auto& [of, bodies] : agent.told) {
    put(out, {Rank{of.second.value}, of.first});
    put(out, bodies);
  }
}

void put(std::string& out, const MixWorker& w) {
  put(out, static_cast<int>(w.phase) + 4 * w.dead + 8 * w.paused + 16 * w.complained);
  put(out, w.t.value);
  put(out, w.contributed.value);
  put(out, static_cast<int>(w.does));
  put(out, w.at.value);
  put(out, w.bodies);
}

}  // namespace

void put(std::string& out, const MixEvent& e) {
  put(out, static_cast<int>(e.kind));
  put(out, e.rank.value);
  put(out, e.version.value);
  put(out, e.mixed.value);
  put(out, e.bodies);
}

std::string bytes_of(const MixState& s) {
  std::string out;
  out.reserve(1024);
  for (const MixAgent& agent : s.agents) put(out, agent);
  put(out, s.network);
  for (const MixWorker& w : s.workers) put(out, w);
  for (const auto& [rank, event] : s.deaths) put(out, event);
  out += '|';
  for (const auto& [c, weight] : s.taken) {
    put(out, c);
    put(out, digits(weight));
  }
  for (const auto& [v, members] : s.mixtures) {
    out += 'v';
    put(out, v.value);
    for (const Rank rank : members) put(out, rank.value);
  }
  for (const auto& [v, scale] : s.scales) put(out, {Rank{-2}, Version{digits(scale)}});
  for (const auto& c : s.stepped) put(out, c);
  put(out, s.completed.value);
  put(out, s.crash_used + 2 * s.spoilt + 4 * s.pause_used);
  return out;
}

Walk walk(const MixModel& model, MixMutation mutation) {
  if (model.batches > 0) {
    BatchShell shell(model, mutation);
    return walk_all(shell);
  }
  MixShell shell(model, mutation);
  return walk_all(shell);
}

}  // namespace paceline::explorer
