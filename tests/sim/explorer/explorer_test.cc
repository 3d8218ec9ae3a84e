#include <gtest/gtest.h>

#include <deque>
#include <iostream>
#include <set>
#include <sstream>
#include <unordered_set>

#include "scheduler/rounds/round_engine.h"
#include "tests/support/rounds/test_plan.h"

// Walks every interleaving of the round core for three workers, two versions and one pause or death, by state hash. A
// state is the engines, the messages under way (any of which may be next), the workers and what shells have still to
// carry out.

namespace paceline::scheduler {
namespace {

using std::chrono::seconds;

struct Model {
  test::TestPlan::Answers answers;
  std::vector<NodeId> node_of;
  std::int32_t nodes = 1;
  Version last{1};
  bool merges = false;
  bool at_once =
      false;  ///< Shells carry out what engines ask for in no time: fewer states where there are many agents.
};

struct Message {
  NodeId to, from;
  std::variant<RoundEngine::Activate, RoundEngine::SendPartial> body;
};
using Work =
    std::pair<NodeId, RoundEngine::Action>;  ///< Seal, Execute or Merge that a shell carries out some time later.

struct State {
  std::vector<RoundEngine> engines;
  std::vector<Message> network;
  std::vector<std::deque<RoundEngine::Action>> work;  ///< One queue an agent: averagings run one after the other.
  enum class Phase { computing, reporting, waiting, over };
  struct Worker {
    Phase phase = Phase::computing;
    Version t{0};
    Version tag{-1};
  };
  std::vector<Worker> workers;
  bool paused_used = false;
  std::set<std::int32_t> paused;
  std::int64_t now = 0;  ///< Moves on only when the patience of somebody runs out.
  std::vector<std::vector<std::pair<Version, std::int32_t>>> executed;  ///< By agent.

  State copy(const Model& m) const {
    State s;
    for (const RoundEngine& e : engines) s.engines.emplace_back(e, std::make_unique<test::TestPlan>(m.answers));
    s.network = network;
    s.work = work;
    s.workers = workers;
    s.paused_used = paused_used;
    s.paused = paused;
    s.now = now;
    s.executed = executed;
    return s;
  }
};

std::string print(const RoundEngine::Action& action) {
  std::ostringstream s;
  if (const auto* seal = std::get_if<RoundEngine::Seal>(&action)) s << 's' << seal->version.value << '.' << seal->group;
  if (const auto* x = std::get_if<RoundEngine::Execute>(&action)) s << 'x' << x->version.value << '.' << x->group;
  if (const auto* m = std::get_if<RoundEngine::Merge>(&action)) s << 'm' << m->rank.value;
  return s.str();
}

std::string fingerprint(const State& s) {
  std::ostringstream out;
  for (const RoundEngine& e : s.engines) out << e.fingerprint() << '|';
  std::multiset<std::string> messages;
  for (const Message& m : s.network) {
    std::ostringstream one;
    one << m.from.value << '>' << m.to.value;
    if (const auto* a = std::get_if<RoundEngine::Activate>(&m.body)) {
      one << 'a' << a->version.value << 'r' << a->root.value;
    } else {
      const auto& p = std::get<RoundEngine::SendPartial>(m.body);
      one << 'p' << p.version.value << '.' << p.group;
    }
    messages.insert(one.str());
  }
  for (const auto& m : messages) out << m << ';';
  for (const auto& queue : s.work) {
    for (const auto& a : queue) out << print(a) << ',';
    out << '/';
  }
  for (const auto& w : s.workers) out << static_cast<int>(w.phase) << ':' << w.t.value << ':' << w.tag.value << ' ';
  out << s.paused_used;
  for (std::int32_t r : s.paused) out << 'z' << r;
  out << '@' << s.now;
  return out.str();
}

class Explorer {
 public:
  explicit Explorer(Model model) : model_(std::move(model)) {}

  void walk() {
    State start;
    RoundEngine::Options options;
    options.node_of = model_.node_of;
    options.nodes = model_.nodes;
    options.last = model_.last;
    options.patience_median_steps = 0;
    for (std::int32_t n = 0; n < model_.nodes; ++n) {
      options.self = NodeId{n};
      start.engines.emplace_back(options, std::make_unique<test::TestPlan>(model_.answers));
    }
    start.workers.resize(model_.node_of.size());
    start.work.resize(start.engines.size());
    start.executed.resize(start.engines.size());
    std::vector<State> stack;
    visit(std::move(start), stack);
    while (!stack.empty() && !testing::Test::HasFatalFailure()) {
      const State s = std::move(stack.back());
      stack.pop_back();
      expand(s, stack);
    }
  }

  std::size_t states() const { return seen_.size(); }
  std::size_t terminal() const { return terminal_; }

 private:
  /// A message that changes nothing now never will, since what engines know only grows: it need not linger.
  void drop_idle_messages(State& s) const {
    std::erase_if(s.network, [&](const Message& m) {
      const RoundEngine& now_there = s.engines[static_cast<std::size_t>(m.to.value)];
      RoundEngine e(now_there, std::make_unique<test::TestPlan>(model_.answers));
      return deliver(e, m, now(s)).empty() && e.fingerprint() == now_there.fingerprint();
    });
  }

  static RoundEngine::Actions deliver(RoundEngine& e, const Message& m, Instant at) {
    if (const auto* a = std::get_if<RoundEngine::Activate>(&m.body))
      return e.on_activation(a->root, m.from, a->version, at);
    const auto& p = std::get<RoundEngine::SendPartial>(m.body);
    return e.on_partial(m.from, p.version, p.group, at);
  }

  void visit(State s, std::vector<State>& stack) {
    drop_idle_messages(s);
    if (!seen_.insert(fingerprint(s)).second) return;
    check(s);
    stack.push_back(std::move(s));
  }

  void expand(const State& s, std::vector<State>& stack) {
    bool moved = false;
    const auto branch = [&](auto&& act) {
      State next = s.copy(model_);
      act(next);
      visit(std::move(next), stack);
      moved = true;
    };
    for (std::size_t i = 0; i < s.workers.size(); ++i) {
      const auto rank = static_cast<std::int32_t>(i);
      const auto phase = s.workers[i].phase;
      if (s.paused.contains(rank)) continue;
      if (phase == State::Phase::computing) {
        branch([&](State& n) {
          n.workers[i].tag = n.workers[i].t;
          n.workers[i].phase = State::Phase::reporting;
        });
      }
      if (phase == State::Phase::reporting) {
        branch([&](State& n) {
          n.workers[i].phase = State::Phase::waiting;
          apply(n, node(rank), engine(n, rank).on_arrival(Rank{rank}, n.workers[i].t, seconds(1), now(n)));
        });
      }
      if (!s.paused_used && (phase == State::Phase::computing || phase == State::Phase::reporting)) {
        const auto stop = [&](State& n) {
          n.paused_used = true;
          n.paused.insert(rank);
        };
        State next = s.copy(model_);
        stop(next);
        visit(std::move(next), stack);
      }
    }
    for (std::int32_t rank : s.paused) {
      if (s.workers[static_cast<std::size_t>(rank)].phase == State::Phase::over) continue;
      branch([&](State& n) { n.paused.erase(rank); });
    }
    for (std::size_t i = 0; i < s.network.size(); ++i) {
      branch([&](State& n) {
        const Message m = n.network[i];
        n.network.erase(n.network.begin() + static_cast<std::ptrdiff_t>(i));
        apply(n, m.to, deliver(n.engines[static_cast<std::size_t>(m.to.value)], m, now(n)));
      });
    }
    for (std::size_t i = 0; i < s.work.size(); ++i) {
      if (s.work[i].empty()) continue;
      branch([&](State& n) {
        const auto action = n.work[i].front();
        n.work[i].pop_front();
        carry_out(n, NodeId{static_cast<std::int32_t>(i)}, action);
      });
    }
    // Patience runs out only for somebody who is stopped, and nothing else has anything to do.
    if (!s.paused.empty()) {
      for (std::size_t i = 0; i < s.engines.size(); ++i) {
        const auto deadline = s.engines[i].next_deadline();
        if (!deadline || !only_the_paused_are_missing(s, i)) continue;
        branch([&](State& n) {
          n.now = std::max(n.now, deadline->time_since_epoch().count());
          apply(n, NodeId{static_cast<std::int32_t>(i)}, n.engines[i].tick(now(n)));
        });
      }
    }
    if (!moved) finish(s);
  }

  static bool only_the_paused_are_missing(const State& s, std::size_t agent) {
    const auto waiting = s.engines[agent].waiting();
    if (!waiting || waiting->missing.empty()) return false;
    for (Rank r : waiting->missing) {
      if (!s.paused.contains(r.value)) return false;
    }
    return true;
  }

  void carry_out(State& n, NodeId id, const RoundEngine::Action& action) {
    RoundEngine& e = n.engines[static_cast<std::size_t>(id.value)];
    if (const auto* seal = std::get_if<RoundEngine::Seal>(&action)) {
      std::vector<std::optional<Version>> contributed;
      for (Rank r : seal->members) contributed.push_back(n.workers[static_cast<std::size_t>(r.value)].tag);
      const Round round = model_.answers.round(seal->version);
      for (const auto& c : contributed) {
        ASSERT_LE(c->value, seal->version.value) << "a contribution from the future";
        if (round.trigger == Trigger::all_arrived && round.late == Lateness::waits) {
          ASSERT_EQ(*c, seal->version) << "a sync without somebody who is here";
        }
      }
      apply(n, id, e.on_sealed(seal->version, seal->group, contributed, now(n)));
    } else if (const auto* x = std::get_if<RoundEngine::Execute>(&action)) {
      n.executed[static_cast<std::size_t>(id.value)].emplace_back(x->version, x->group);
      apply(n, id, e.on_executed(x->version, x->group, {}, now(n)));
    } else {
      apply(n, id, e.on_merged(std::get<RoundEngine::Merge>(action).rank, now(n)));
    }
  }

  void apply(State& n, NodeId id, const RoundEngine::Actions& actions) {
    for (const auto& action : actions) {
      if (const auto* a = std::get_if<RoundEngine::Activate>(&action)) {
        n.network.push_back({a->to, id, *a});
      } else if (const auto* p = std::get_if<RoundEngine::SendPartial>(&action)) {
        n.network.push_back({p->to, id, *p});
      } else if (const auto* v = std::get_if<RoundEngine::Verdict>(&action)) {
        auto& w = n.workers[static_cast<std::size_t>(v->rank.value)];
        ASSERT_EQ(static_cast<int>(w.phase), static_cast<int>(State::Phase::waiting))
            << "a verdict for somebody who does not wait";
        ASSERT_GT(v->next, w.t);
        if (model_.merges) {
          ASSERT_EQ(v->next, w.t.next());
        }
        w.phase = v->end ? State::Phase::over : State::Phase::computing;
        w.t = v->next;
      } else if (const auto* l = std::get_if<RoundEngine::Leave>(&action)) {
        ASSERT_TRUE(n.paused.contains(l->rank.value)) << "somebody left who was not stopped";
        n.workers[static_cast<std::size_t>(l->rank.value)].phase = State::Phase::over;
      } else if (!std::holds_alternative<RoundEngine::Abandon>(action)) {
        n.work[static_cast<std::size_t>(id.value)].push_back(action);
      }
    }
    auto& work = n.work[static_cast<std::size_t>(id.value)];
    while (model_.at_once && !work.empty()) {
      const auto action = work.front();
      work.pop_front();
      carry_out(n, id, action);
    }
  }

  /// Invariants of every state.
  void check(const State& s) {
    for (const auto& list : s.executed) {
      std::set<std::pair<Version, std::int32_t>> unique(list.begin(), list.end());
      ASSERT_EQ(unique.size(), list.size()) << "executed twice";
      ASSERT_TRUE(
          std::is_sorted(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.first < b.first; }));
    }
    for (std::size_t i = 0; i < s.workers.size(); ++i) {
      const RoundEngine& e = s.engines[static_cast<std::size_t>(model_.node_of[i].value)];
      ASSERT_LE(s.workers[i].t.value, e.done().value + 2) << "a worker is ahead of its agent";
    }
    // Nobody executes a version of everybody twice over: agents are at most one sync apart.
    for (const RoundEngine& a : s.engines) {
      for (const RoundEngine& b : s.engines) {
        if (model_.answers.round(a.done()).kind == Round::Kind::sync && a.done() > b.done().next()) {
          ASSERT_GE(b.done().next(), a.done()) << "a sync was executed that another agent cannot have sealed";
        }
      }
    }
  }

  /// A state in which nothing more can happen: everybody must be through.
  void finish(const State& s) {
    ++terminal_;
    for (std::size_t i = 0; i < s.workers.size(); ++i) {
      ASSERT_EQ(static_cast<int>(s.workers[i].phase), static_cast<int>(State::Phase::over))
          << "worker " << i << " hangs: " << fingerprint(s);
    }
    for (const RoundEngine& e : s.engines) ASSERT_EQ(e.done(), model_.last) << fingerprint(s);
  }

  static RoundEngine& engine(State& s, std::int32_t rank, const std::vector<NodeId>& node_of) {
    return s.engines[static_cast<std::size_t>(node_of[static_cast<std::size_t>(rank)].value)];
  }
  RoundEngine& engine(State& s, std::int32_t rank) const { return engine(s, rank, model_.node_of); }
  NodeId node(std::int32_t rank) const { return model_.node_of[static_cast<std::size_t>(rank)]; }
  static Instant now(const State& s) { return Instant{Duration(s.now)}; }

  Model model_;
  std::unordered_set<std::string> seen_;
  std::size_t terminal_ = 0;
};

std::vector<NodeId> spread(std::initializer_list<std::int32_t> nodes) {
  std::vector<NodeId> result;
  for (std::int32_t n : nodes) result.push_back(NodeId{n});
  return result;
}

void explore(const char* name, Model model) {
  Explorer sut(std::move(model));
  sut.walk();
  std::cout << name << ": " << sut.states() << " states, " << sut.terminal() << " terminal" << std::endl;
  EXPECT_GT(sut.states(), 100u);
  EXPECT_GT(sut.terminal(), 0u);
}

std::vector<std::vector<Rank>> two_and_one(Version) { return {test::ranks({0, 1}), test::ranks({2})}; }
std::vector<std::vector<Rank>> all_three(Version) { return {test::ranks({0, 1, 2})}; }

#ifdef NDEBUG
constexpr bool kAll = true;
#else
constexpr bool kAll = false;  // Minutes under the sanitizers: what takes them walks fewer states.
#endif

TEST(Explorer, AllreduceOnOneTwoAndThreeAgents) {
  explore("allreduce, 1 agent", {test::allreduce(), spread({0, 0, 0}), 1});
  explore("allreduce, 2 agents", {test::allreduce(), spread({0, 0, 1}), 2});
  if (kAll) explore("allreduce, 3 agents", {test::allreduce(), spread({0, 1, 2}), 3, Version{1}, false, true});
}

TEST(Explorer, FirstArrivalThatMergesThenASync) {
  const auto all = test::wagma(2, Lateness::merges, {}, all_three);
  const auto some = test::wagma(2, Lateness::merges, {}, two_and_one);
  explore("merge, 1 agent", {all, spread({0, 0, 0}), 1, Version{1}, true});
  explore("merge, 2 agents", {all, spread({0, 1, 1}), 2, Version{1}, true, !kAll});
  explore("merge, 2 agents, groups of 2 and 1", {some, spread({0, 1, 1}), 2, Version{1}, true, !kAll});
  if (kAll) explore("merge, 3 agents", {all, spread({0, 1, 2}), 3, Version{1}, true, true});
}

TEST(Explorer, FirstArrivalThatSkipsThenASync) {
  const auto all = test::wagma(2, Lateness::skips, {}, all_three);
  explore("skip, 1 agent", {all, spread({0, 0, 0}), 1});
  explore("skip, 2 agents", {all, spread({0, 1, 1}), 2, Version{1}, false, !kAll});
  if (kAll) explore("skip, 3 agents", {all, spread({0, 1, 2}), 3, Version{1}, false, true});
}

}  // namespace
}  // namespace paceline::scheduler
