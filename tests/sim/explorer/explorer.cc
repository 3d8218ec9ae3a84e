#include "tests/sim/explorer/explorer.h"

#include <memory>
#include <utility>
#include <vector>

#include "tests/sim/explorer/round_shell.h"
#include "tests/sim/explorer/seen.h"

namespace paceline::explorer {
namespace {

using WayPtr = std::shared_ptr<const Way<Move>>;

class Walker {
 public:
  Walker(const Model& model, Mutation mutation) : shell_(model, mutation) {}

  Walk run() {
    visit(shell_.start(), [] { return WayPtr(); });
    while (!stack_.empty() && shell_.violation().empty()) {
      const auto [state, way] = std::move(stack_.back());
      stack_.pop_back();
      expand(state, way);
    }
    result_.states = seen_.size();
    result_.violation = shell_.violation();
    return std::move(result_);
  }

 private:
  void expand(const State& s, const WayPtr& way) {
    const auto steps = shell_.steps(s), ticks = shell_.ticks(s), thaws = shell_.thaws(s);
    if (steps.empty()) shell_.check_quiet(s);
    if (steps.empty() && ticks.empty()) {
      ++result_.ends;
      shell_.check_end(s);
    }
    if (!shell_.violation().empty()) result_.way = print(way);
    for (const auto& moves : {shell_.faults(s), thaws, ticks, steps}) {
      for (const Move& move : moves) {
        if (!shell_.violation().empty()) return;
        State next = s;
        shell_.make(next, move);
        visit(std::move(next), [&] { return std::make_shared<const Way<Move>>(Way<Move>{move, way}); });
      }
    }
  }

  /// `way`: gives the way there; most states have been seen before.
  template <class MakeWay>
  void visit(State s, MakeWay&& way) {
    if (shell_.violation().empty()) {
      shell_.drop_idle_messages(s);
      if (!seen_.add(bytes_of(s))) return;
      shell_.check(s);
    }
    if (!shell_.violation().empty()) {
      result_.way = print<Move>(way());
      return;
    }
    stack_.emplace_back(std::move(s), way());
  }

  RoundShell shell_;
  Seen seen_;
  std::vector<std::pair<State, WayPtr>> stack_;
  Walk result_;
};

}  // namespace

Walk walk(const Model& model, Mutation mutation) { return Walker(model, mutation).run(); }

}  // namespace paceline::explorer
