#pragma once

#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "scheduler/rounds/round_engine.h"
#include "tests/support/rounds/test_plan.h"

namespace paceline::test {

using scheduler::RoundEngine;

/// Round engines of several agents with a network of one queue between them that a test delivers by hand, and shells
/// that carry out every action at once. Windows are modelled by the tag of each worker's last publication.
class Agents {
 public:
  Agents(std::int32_t nodes, std::vector<std::int32_t> node_of, const TestPlan::Answers& answers, std::int64_t last,
         RoundEngine::Options options = {}) {
    for (std::int32_t n : node_of) options.node_of.push_back(NodeId{n});
    options.last = Version{last};
    for (std::int32_t n = 0; n < nodes; ++n) {
      options.self = NodeId{n};
      engines.emplace_back(options, std::make_unique<TestPlan>(answers));
    }
    node_of_ = options.node_of;
  }

  /// The worker publishes iteration t and reports it; its own agent acts, messages to others stay in the queue.
  void arrive(std::int32_t rank, std::int64_t t) {
    publish(rank, t);
    report(rank, t);
  }
  void publish(std::int32_t rank, std::int64_t t) { tags[Rank{rank}] = Version{t}; }
  void report(std::int32_t rank, std::int64_t t) {
    verdicts.erase(Rank{rank});
    run(node(rank), engine(rank).on_arrival(Rank{rank}, Version{t}, compute, now));
  }
  void gone(std::int32_t rank) { run(node(rank), engine(rank).on_gone(Rank{rank}, now)); }
  /// Its next process has shared its model: `admitted` says when it may come in.
  void return_of(std::int32_t rank) {
    tags.erase(Rank{rank});
    run(node(rank), engine(rank).on_return(Rank{rank}, now));
  }
  /// `agent` goes on without another one; what that has sent may still be under way.
  void lose(std::int32_t agent, std::int32_t lost) {
    const auto at = static_cast<std::size_t>(agent);
    run(at, engines[at].on_node_gone(NodeId{lost}, now));
  }
  void second_is_lost() { lose(0, 1); }
  void tick() {
    for (std::size_t n = 0; n < engines.size(); ++n) run(n, engines[n].tick(now));
  }
  /// Moves the time on and ticks.
  void after(Duration d) {
    now += d;
    tick();
  }

  struct Message {
    NodeId from, to;
    std::variant<RoundEngine::Activate, RoundEngine::Count, RoundEngine::Gone, RoundEngine::SendPartial> body;
  };
  void deliver(std::size_t index = 0) {
    const Message m = network[index];
    network.erase(network.begin() + static_cast<std::ptrdiff_t>(index));
    hand_over(m);
  }
  void hand_over(const Message& m) {
    const auto to = static_cast<std::size_t>(m.to.value);
    if (const auto* a = std::get_if<RoundEngine::Activate>(&m.body)) {
      run(to, engines[to].on_activation(a->root, m.from, a->version, now));
    } else if (const auto* c = std::get_if<RoundEngine::Count>(&m.body)) {
      run(to, engines[to].on_count(c->version, now));
    } else if (const auto* g = std::get_if<RoundEngine::Gone>(&m.body)) {
      g->back ? engines[to].on_back_elsewhere(g->rank) : run(to, engines[to].on_gone_elsewhere(g->rank, now));
    } else {
      const auto& p = std::get<RoundEngine::SendPartial>(m.body);
      run(to, engines[to].on_partial(m.from, p.version, p.group, now));
    }
  }
  void deliver_all() {
    while (!network.empty()) deliver();
  }

  /// The verdict that the worker got since its last report; fails the test if there is none.
  bool has_verdict(std::int32_t rank) const { return verdicts.contains(Rank{rank}); }
  RoundEngine::Verdict verdict(std::int32_t rank) const { return verdicts.at(Rank{rank}); }

  RoundEngine& engine(std::int32_t rank) { return engines[node(rank)]; }
  std::size_t node(std::int32_t rank) const {
    return static_cast<std::size_t>(node_of_[static_cast<std::size_t>(rank)].value);
  }

  Instant now{};
  Duration compute = std::chrono::seconds(1);
  bool hold_seals = false;       ///< Seal actions wait in `held` until release().
  bool hold_executions = false;  ///< The same for Execute.
  bool hold_merges = false;

  void release() {
    auto actions = std::exchange(held, {});
    for (auto& [n, action] : actions) carry_out(n, action, true);
  }

  std::vector<RoundEngine> engines;
  std::map<Rank, Version> tags;
  std::deque<Message> network;
  std::map<Rank, RoundEngine::Verdict> verdicts;
  std::vector<std::pair<std::size_t, RoundEngine::Action>> held;
  std::vector<std::pair<std::size_t, RoundEngine::Execute>> executed;
  std::vector<RoundEngine::Merge> merged;
  std::vector<RoundEngine::Leave> left;
  std::vector<RoundEngine::Admit> admitted;
  std::vector<std::pair<std::size_t, Version>> abandoned;
  std::vector<RoundEngine::Activate> activations;

 private:
  void run(std::size_t n, RoundEngine::Actions actions) {
    for (RoundEngine::Action& a : actions) carry_out(n, a, false);
  }

  void carry_out(std::size_t n, const RoundEngine::Action& action, bool released) {
    RoundEngine& e = engines[n];
    const NodeId self{static_cast<std::int32_t>(n)};
    if (const auto* a = std::get_if<RoundEngine::Activate>(&action)) {
      activations.push_back(*a);
      network.push_back({self, a->to, *a});
    } else if (const auto* c = std::get_if<RoundEngine::Count>(&action)) {
      network.push_back({self, c->to, *c});
    } else if (const auto* g = std::get_if<RoundEngine::Gone>(&action)) {
      network.push_back({self, g->to, *g});
    } else if (const auto* s = std::get_if<RoundEngine::Seal>(&action)) {
      if (hold_seals && !released) return held.emplace_back(n, action), void();
      std::vector<std::optional<Version>> contributed;
      for (Rank r : s->members) contributed.push_back(tags.contains(r) ? std::optional(tags[r]) : std::nullopt);
      run(n, e.on_sealed(s->version, s->group, contributed, now));
    } else if (const auto* p = std::get_if<RoundEngine::SendPartial>(&action)) {
      network.push_back({self, p->to, *p});
    } else if (const auto* x = std::get_if<RoundEngine::Execute>(&action)) {
      if (hold_executions && !released) return held.emplace_back(n, action), void();
      executed.emplace_back(n, *x);
      run(n, e.on_executed(x->version, x->group, {}, now));
    } else if (const auto* m = std::get_if<RoundEngine::Merge>(&action)) {
      if (hold_merges && !released) return held.emplace_back(n, action), void();
      merged.push_back(*m);
      run(n, e.on_merged(m->rank, now));
    } else if (const auto* v = std::get_if<RoundEngine::Verdict>(&action)) {
      verdicts[v->rank] = *v;
    } else if (const auto* b = std::get_if<RoundEngine::Abandon>(&action)) {
      abandoned.emplace_back(n, b->version);
    } else if (const auto* i = std::get_if<RoundEngine::Admit>(&action)) {
      admitted.push_back(*i);
    } else {
      left.push_back(std::get<RoundEngine::Leave>(action));
    }
  }

  std::vector<NodeId> node_of_;
};

}  // namespace paceline::test
