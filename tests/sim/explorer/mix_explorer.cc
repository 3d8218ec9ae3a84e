#include <iterator>
#include <unordered_set>

#include "tests/sim/explorer/mix_shell.h"

namespace paceline::explorer {
namespace {

void put(std::string& out, std::int64_t number) { out += std::to_string(number) + ' '; }

void put(std::string& out, const MixEvent& e) {
  put(out, static_cast<int>(e.kind));
  put(out, e.rank.value);
  put(out, e.version.value);
  put(out, e.mixed.value);
}

std::string print(const std::vector<MixMove>& way) {
  static constexpr const char* kNames[] = {"contributes: worker ", "waits: worker ", "dies: worker ",
                                           "a message arrives from agent ", "mixes: agent "};
  std::string text;
  for (const MixMove& m : way) {
    text += std::string("  ") + kNames[static_cast<int>(m.kind)] + std::to_string(m.who);
    text += m.kind == MixMove::Kind::deliver ? " at agent " + std::to_string(m.to) + "\n" : "\n";
  }
  return text;
}

}  // namespace

/// What an engine was told, in whatever order, is in its worker's and its own lists: those tell states apart.
std::string bytes_of(const MixState& s) {
  std::string out;
  for (const MixAgent& agent : s.agents) {
    for (const Version v : agent.heard) put(out, v.value);
    out += 'w';
    for (const auto& mix : agent.work) {
      put(out, mix.rank.value);
      put(out, mix.version.value);
      for (const Share& share : mix.row) put(out, share.from.value);
      for (const Share& share : mix.row) put(out, static_cast<std::int64_t>(share.weight * 720720));
    }
    out += 'h';
    for (const auto& [rank, v] : agent.held) {
      put(out, rank.value);
      put(out, v.value);
    }
    if (agent.gone) put(out, *agent.gone);
    out += '/';
  }
  for (const auto& [ends, wire] : s.wires) {
    if (wire.empty()) continue;
    put(out, ends.first.value);
    put(out, ends.second.value);
    for (const MixEvent& e : wire) put(out, e);
  }
  out += '|';
  for (const MixWorker& w : s.workers) {
    put(out, static_cast<int>(w.phase) + 8 * w.dead);
    put(out, w.t.value);
  }
  for (const auto& [c, weight] : s.taken) {
    put(out, c.first.value);
    put(out, c.second.value);
    put(out, static_cast<std::int64_t>(weight * 720720));
  }
  put(out, s.crash_used + 2 * s.spoilt);
  return out;
}

MixWalk walk(const MixModel& model, MixMutation mutation) {
  MixShell shell(model, mutation);
  MixWalk result;
  std::unordered_set<std::size_t> seen;
  struct Entry {
    MixState state;
    std::vector<MixMove> way;
  };
  std::vector<Entry> stack;
  stack.push_back({shell.start(), {}});
  while (!stack.empty() && shell.violation().empty()) {
    const Entry entry = std::move(stack.back());
    stack.pop_back();
    result.way = print(entry.way);
    const auto moves = shell.moves(entry.state);
    if (moves.empty()) {
      ++result.ends;
      shell.check_end(entry.state);
    }
    for (const MixMove& move : moves) {
      Entry next = entry;
      next.way.push_back(move);
      shell.make(next.state, move);
      if (!shell.violation().empty()) {
        result.way = print(next.way);
        break;
      }
      if (seen.insert(std::hash<std::string>{}(bytes_of(next.state))).second) stack.push_back(std::move(next));
    }
  }
  result.states = seen.size();
  result.violation = shell.violation();
  return result;
}

}  // namespace paceline::explorer
