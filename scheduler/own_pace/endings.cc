#include "scheduler/own_pace/endings.h"

#include <algorithm>
#include <variant>

namespace paceline::scheduler {

using Said = wire::Ending::Phase;
using On = Agreement::On;

void Endings::stop_soon() {
  if (work_.chronicle.replays() || std::exchange(wished_, true)) return;
  wish(On::end);
}

void Endings::wish(On what) {
  agree_on(what);
  if (!work_.view.leads()) send(work_.view.leader(), Said::WISH, what, {});
}

void Endings::agree_on(On what) {
  if (work_.chronicle.replays() || end_) return;
  undecided_.insert(what);
  if (work_.view.leads()) act(agreement_.wish(what));
}

void Endings::pass_on(NodeId lost, NodeId to) {
  if (lost > work_.view.leader()) return;
  if (graph_.number > 0) send_graph(to, graph_);
  if (end_) send(to, Said::DECIDE, On::end, *end_);
}

void Endings::on_node_lost() {
  for (const On what : std::set(undecided_)) wish(what);
  act(agreement_.on_lost(work_.view.nodes()));
}

void Endings::let_go() {
  frozen_.reset();
  given_until_.reset();
}

// Words between agents

void Endings::send(NodeId to, Said phase, On what, Version v, const std::vector<std::pair<Rank, Version>>& begun,
                   std::int64_t number) {
  wire::Message message;
  auto body = message.root().initEnding();
  body.setJob(work_.job.job.value);
  body.setPhase(phase);
  body.setVersion(v.value);
  body.setGraph(what == On::graph);
  body.setNumber(number);
  auto list = body.initBegun(static_cast<unsigned>(begun.size()));
  for (unsigned i = 0; i < list.size(); ++i) {
    list[i].setRank(begun[i].first.value);
    list[i].setVersion(begun[i].second.value);
  }
  work_.send(to, message);
}

void Endings::send_graph(NodeId to, const Graph& graph) {
  std::vector<std::pair<Rank, Version>> members;
  for (const Rank rank : graph.members) members.emplace_back(rank, Version{-1});
  for (const Rank rank : graph.join) members.emplace_back(rank, graph.last);
  send(to, Said::DECIDE, On::graph, graph.last, members, graph.number);
}

void Endings::on_message(NodeId from, const wire::Ending::Reader& ending) {
  const Version v{ending.getVersion()};
  const auto what = ending.getGraph() ? On::graph : On::end;
  switch (ending.getPhase()) {
    case Said::WISH: return agree_on(what);
    case Said::ASK:
      undecided_.insert(what);
      freeze(what);
      return answer(from, what);
    case Said::ANSWER:
      for (const auto each : ending.getBegun()) {
        const Rank rank{each.getRank()};
        if (!work_.view.lives_on(rank, from)) continue;
        if (what == On::graph) joining_.insert(rank);
        if (what == On::end) elsewhere_[rank] = Version{each.getVersion()};
      }
      return act(agreement_.on_answer(from, what, v, work_.view.nodes()));
    case Said::DECIDE: {
      if (what == On::end) return decide_end(v);
      Graph graph{ending.getNumber(), v, {}, {}};
      for (const auto each : ending.getBegun()) {
        const Rank rank{each.getRank()};
        if (!work_.view.has(rank)) return;
        if (each.getVersion() == v.value) {
          graph.join.insert(rank);
        } else {
          graph.members.push_back(rank);
        }
      }
      return decide_graph(graph);
    }
  }
}

void Endings::answer(NodeId to, On what) {
  std::vector<std::pair<Rank, Version>> begun;
  if (what == On::graph)
    for (const Rank rank : workers_.joining()) begun.emplace_back(rank, Version{});
  if (workers_.ends_apart())
    for (const Rank rank : workers_.living_ranks()) begun.emplace_back(rank, workers_.begun_of(rank));
  send(to, Said::ANSWER, what, given_at_most(), begun);
}

// The leader

void Endings::act(const Agreement::Actions& actions) {
  for (const auto& action : actions) std::visit([this](const auto& a) { carry_out(a); }, action);
}

void Endings::carry_out(const Agreement::Ask& ask) {
  joining_.clear();
  for (const NodeId node : work_.view.others()) send(node, Said::ASK, ask.what, {});
  freeze(ask.what);
  act(agreement_.on_answer(work_.job.self, ask.what, given_at_most(), work_.view.nodes()));
}

void Endings::carry_out(const Agreement::Decide& decided) {
  const bool is_end = decided.what == On::end;
  const Version last = is_end ? std::min(decided.last, workers_.last()) : decided.last;
  Graph graph{graph_.number + 1, last, workers_.left(), std::exchange(joining_, {})};
  for (const Rank rank : workers_.joining()) graph.join.insert(rank);
  std::erase_if(graph.join, [this](Rank rank) { return work_.view.is_without(work_.view.node_of(rank)); });
  std::erase_if(graph.members, [&](Rank rank) { return graph.join.contains(rank); });
  for (const NodeId node : work_.view.others())
    is_end ? send(node, Said::DECIDE, On::end, last) : send_graph(node, graph);
  is_end ? decide_end(last) : decide_graph(graph);
}

// Everywhere

void Endings::freeze(On what) {
  if (workers_.records_holds()) work_.chronicle.record({.kind = Decision::Kind::frozen});
  hold_back();
  given_until_.reset();
  if (what == On::graph) given_until_ = workers_.last_given(*frozen_);
}

/// It may be told by several.
void Endings::decide_graph(const Graph& graph) {
  if (graph.number <= graph_.number) return;
  graph_ = graph;
  undecided_.erase(On::graph);
  agreement_.on_decided(On::graph, graph.last);
  Decision remade{.kind = Decision::Kind::remade, .version = graph.last};
  for (const Rank rank : graph.members) remade.contributions.push_back({rank, std::nullopt, 0});
  for (const Rank rank : graph.join) remade.contributions.push_back({rank, graph.last, 0});
  work_.chronicle.hear(remade, work_.now());
}

void Endings::decide_end(Version last) {
  if (std::exchange(end_, last)) return;  // All were told the same.
  undecided_.clear();
  agreement_.on_decided(On::end, last);
  if (!workers_.ends_apart()) return work_.chronicle.hear({.kind = Decision::Kind::ends, .version = last}, work_.now());
  auto ends = elsewhere_;
  for (const Rank rank : workers_.living_ranks()) ends[rank] = workers_.begun_of(rank);
  Decision apart{.kind = Decision::Kind::ends_apart, .version = last};
  for (const auto& [rank, v] : ends) apart.contributions.push_back({rank, std::min(v, last), 0});
  work_.chronicle.hear(apart, work_.now());
}

}  // namespace paceline::scheduler
