#include "tests/sim/explorer/round_state.h"

#include <set>
#include <sstream>

namespace paceline::explorer {
namespace {

void put(std::ostream& out, const Contents& contents) {
  for (const Content& c : contents) out << static_cast<int>(c.tag) << '.' << static_cast<int>(c.gradients) << ' ';
}

void put(std::ostream& out, const RoundEngine::Action& action) {
  if (const auto* s = std::get_if<RoundEngine::Seal>(&action)) out << 's' << s->version.value << '.' << s->group;
  if (const auto* x = std::get_if<RoundEngine::Execute>(&action)) out << 'x' << x->version.value << '.' << x->group;
  if (const auto* m = std::get_if<RoundEngine::Merge>(&action)) out << 'm' << m->rank.value << '.' << m->with.value;
}

void put(std::ostream& out, const Agent& agent) {
  out << agent.core->print << '|';
  for (const auto& action : agent.work) {
    put(out, action);
    out << ',';
  }
  for (const auto& [key, contents] : agent.pinned) {
    out << 'P' << key.first.value << '.' << key.second << ' ';
    put(out, contents);
  }
  for (const auto& [key, sums] : agent.partials) {
    for (const auto& [from, sum] : sums) {
      out << 'R' << key.first.value << '.' << key.second << '<' << from.value << ' ';
      put(out, sum);
    }
  }
  for (const auto& [key, done] : agent.executed) out << 'X' << key.first.value << '.' << key.second;
  out << 'A' << agent.abandoned.value << ' ' << agent.result.value << '/';
}

void put(std::ostream& out, const Worker& w) {
  out << static_cast<int>(w.phase) << (w.paused ? 'z' : '-') << (w.dead ? 'd' : '-') << (w.noticed ? 'n' : '-')
      << (w.left ? 'l' : '-') << w.t.value << ' ' << w.next_round.value << ' '
      << static_cast<int>(w.publication.tag) << '.' << static_cast<int>(w.publication.gradients) << ' ';
  for (const Version v : w.reports) out << 'r' << v.value;
  out << ' ' << w.delivered.value << ' ' << w.retained.value << ' ' << w.merged.value << ' '
      << static_cast<int>(w.contributed) << ' ' << static_cast<int>(w.given_up) << ';';
}

}  // namespace

std::string print(const Message& m) {
  std::ostringstream out;
  out << m.from.value << '>' << m.to.value;
  if (const auto* a = std::get_if<RoundEngine::Activate>(&m.body)) {
    out << 'a' << a->version.value << 'r' << a->root.value;
  } else if (const auto* c = std::get_if<RoundEngine::Count>(&m.body)) {
    out << 'c' << c->version.value;
  } else {
    const auto& p = std::get<RoundEngine::SendPartial>(m.body);
    out << 'p' << p.version.value << '.' << p.group << ' ';
    put(out, m.sum);
  }
  return out.str();
}

std::string print(const State& s) {
  std::ostringstream out;
  for (const Agent& agent : s.agents) put(out, agent);
  std::multiset<std::string> messages;
  for (const Message& m : s.network) messages.insert(print(m));
  for (const auto& m : messages) out << m << ';';
  for (const Worker& w : s.workers) put(out, w);
  for (const auto& [key, contents] : s.truth) {
    out << 'T' << key.first.value << '.' << key.second << ' ';
    put(out, contents);
  }
  out << s.pause_used << s.crash_used << s.spoilt << '@' << s.now.count();
  return out.str();
}

std::string print(const Move& move) {
  static constexpr const char* kNames[] = {"worker publishes",       "worker publishes a part", "report arrives of worker",
                                           "worker takes up result", "worker stops",            "worker wakes",
                                           "worker dies",            "agent hears of the death of worker",
                                           "message arrives",        "agent carries out its next work",
                                           "agent looks at its deadlines"};
  return std::string(kNames[static_cast<int>(move.kind)]) + " " + std::to_string(move.who);
}

}  // namespace paceline::explorer
