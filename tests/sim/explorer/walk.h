#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/sim/explorer/seen.h"

namespace paceline::explorer {

/// What a walk came to.
struct Walk {
  std::size_t states = 0;
  std::size_t ends = 0;   ///< States in which nothing more can happen, unless a fault comes or one that stopped wakes.
  std::string violation;  ///< Empty: no promise was broken. The walk ends at the first that is.
  std::string way;        ///< How to get there, one move a line.
};

/// The last move on the way to a state, and the way before it.
template <class Move>
struct Way {
  Move move;
  std::shared_ptr<const Way> before;
};

template <class Move>
std::string print(const std::shared_ptr<const Way<Move>>& way) {
  std::vector<const Move*> moves;
  for (const Way<Move>* w = way.get(); w != nullptr; w = w->before.get()) moves.push_back(&w->move);
  std::string text;
  for (auto it = moves.rbegin(); it != moves.rend(); ++it) text += "  " + print(**it) + "\n";
  return text;
}

/// Walks through all states that a shell's model can be in, depth first, each once (known by a 64-bit hash of all that
/// it is made of).
template <class Shell>
Walk walk_all(Shell& shell) {
  using At = typename Shell::State;
  using Step = typename Shell::Move;
  using WayPtr = std::shared_ptr<const Way<Step>>;
  Walk result;
  Seen seen;
  std::vector<std::pair<At, WayPtr>> stack;
  const auto visit = [&](At s, const auto& way) {
    if (!shell.violation().empty()) result.way = print<Step>(way());
    if (!shell.violation().empty() || !seen.add(bytes_of(s))) return;
    stack.emplace_back(std::move(s), way());
  };
  visit(shell.start(), [] { return WayPtr(); });
  while (!stack.empty() && shell.violation().empty()) {
    const auto [state, way] = std::move(stack.back());
    stack.pop_back();
    const auto steps = shell.steps(state);
    if (steps.empty()) {
      ++result.ends;
      shell.check_end(state);
      if (!shell.violation().empty()) result.way = print(way);
    }
    for (const auto& moves : {shell.faults(state), steps}) {
      for (const Step& move : moves) {
        if (!shell.violation().empty()) break;
        At next = state;
        shell.make(next, move);
        visit(std::move(next), [&] { return std::make_shared<const Way<Step>>(Way<Step>{move, way}); });
      }
    }
  }
  result.states = seen.size();
  result.violation = shell.violation();
  return result;
}

}  // namespace paceline::explorer
