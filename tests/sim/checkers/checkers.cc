#include "tests/sim/checkers/checkers.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

namespace paceline::sim {
namespace {

namespace event = simulate::event;

using Key = std::pair<Version, std::int32_t>;

std::string at(NodeId node, Version v, std::int32_t group) {
  return "agent " + to_string(node) + ", version " + to_string(v) + ", group " + std::to_string(group);
}

template <class What, class Do>
void each(const Events& events, Do&& act) {
  for (const simulate::Event& e : events) {
    if (const auto* what = std::get_if<What>(&e.what)) act(*what, e.at);
  }
}

NodeId node_of(const Expected& expected, Rank rank) { return expected.node_of[static_cast<std::size_t>(rank.value)]; }

}  // namespace

std::string check_exactly_once(const Events& events, const Expected& expected) {
  std::string wrong;
  std::map<NodeId, Version> newest;
  std::set<std::tuple<NodeId, Version, std::int32_t>> seen;
  each<event::Executed>(events, [&](const event::Executed& x, Instant) {
    if (!wrong.empty()) return;
    if (!seen.emplace(x.node, x.version, x.group).second) wrong = at(x.node, x.version, x.group) + ": executed twice";
    Version& n = newest.try_emplace(x.node, Version{-1}).first->second;
    if (x.version < n) wrong = at(x.node, x.version, x.group) + ": executed after version " + to_string(n);
    n = std::max(n, x.version);
  });
  for (std::size_t v = 0; v < expected.groups.size() && wrong.empty(); ++v) {
    for (std::size_t g = 0; g < expected.groups[v].size(); ++g) {
      for (Rank rank : expected.groups[v][g]) {
        const std::tuple key(node_of(expected, rank), Version{static_cast<std::int64_t>(v)},
                             static_cast<std::int32_t>(g));
        if (!seen.contains(key)) return at(std::get<0>(key), std::get<1>(key), std::get<2>(key)) + ": never executed";
      }
    }
  }
  return wrong;
}

std::string check_same_contributions(const Events& events, const Expected& expected) {
  std::map<Key, std::map<Rank, Version>> sealed;
  std::map<Key, std::set<NodeId>> sealers;
  std::string wrong;
  each<event::Sealed>(events, [&](const event::Sealed& s, Instant) {
    if (!sealers[{s.version, s.group}].insert(s.node).second) wrong = at(s.node, s.version, s.group) + ": sealed twice";
    for (const auto& [rank, tag] : s.tags) {
      if (node_of(expected, rank) != s.node)
        wrong = at(s.node, s.version, s.group) + ": sealed a worker of another agent";
      sealed[{s.version, s.group}][rank] = tag;
    }
  });
  each<event::Executed>(events, [&](const event::Executed& x, Instant) {
    if (wrong.empty() && x.tags != sealed[{x.version, x.group}]) {
      wrong = at(x.node, x.version, x.group) + ": executed with other contributions than those that were sealed";
    }
  });
  return wrong;
}

std::string check_mass(const Events& events, const Expected& expected) {
  std::map<Key, std::map<Rank, simulate::Vector>> sealed;
  each<event::Sealed>(events, [&](const event::Sealed& s, Instant) {
    sealed[{s.version, s.group}].insert(s.numbers.begin(), s.numbers.end());
  });
  std::map<Key, simulate::Vector> means;
  std::map<Version, simulate::Vector> into, out_of;
  std::set<Version> stale;
  std::string wrong;
  each<event::Executed>(events, [&](const event::Executed& x, Instant) {
    for (const auto& [rank, tag] : x.tags) {
      if (tag != x.version) stale.insert(x.version);
    }
    const auto [it, first] = means.try_emplace({x.version, x.group}, x.mean);
    if (!first && it->second != x.mean && wrong.empty())
      wrong = at(x.node, x.version, x.group) + ": agents hold different results";
    const auto& members = expected.groups[static_cast<std::size_t>(x.version.value)][static_cast<std::size_t>(x.group)];
    if (!expected.faults && expected.everybody_contributes && x.tags.size() != members.size() && wrong.empty()) {
      wrong = at(x.node, x.version, x.group) + ": " + std::to_string(x.tags.size()) + " contributions of " +
              std::to_string(members.size()) + " members";
    }
    if (!first) return;
    auto& in = into.try_emplace(x.version, x.mean.size(), 0.0).first->second;
    auto& result = out_of.try_emplace(x.version, x.mean.size(), 0.0).first->second;
    for (std::size_t k = 0; k < x.mean.size(); ++k) {
      if (!expected.everybody_contributes) continue;  // Its result is no plain mean.
      for (const auto& [rank, numbers] : sealed[{x.version, x.group}]) in[k] += numbers[k];
      result[k] += x.mean[k] * static_cast<double>(x.tags.size());
    }
  });
  for (const auto& [v, in] : into) {
    for (std::size_t k = 0; k < in.size() && !stale.contains(v); ++k) {
      if (std::abs(in[k] - out_of[v][k]) > 1e-9 * std::max(1.0, std::abs(in[k])))
        wrong = "version " + to_string(v) + ": mass is not conserved";
    }
  }
  return wrong;
}

std::string check_lag(const Events& events, const Expected& expected) {
  if (!expected.merges || expected.faults) return {};
  std::string wrong;
  each<event::Executed>(events, [&](const event::Executed& x, Instant) {
    const bool sync = expected.sync[static_cast<std::size_t>(x.version.value)];
    for (const auto& [rank, tag] : x.tags) {
      const std::int64_t lag = x.version.value - tag.value;
      // At the start W_0 with tag -1 is what everybody has published.
      if ((lag < 0 || lag > (sync ? 0 : expected.tau - 1)) && wrong.empty()) {
        wrong =
            at(x.node, x.version, x.group) + ": worker " + to_string(rank) + " contributed iteration " + to_string(tag);
      }
    }
  });
  return wrong;
}

std::string check_nobody_waits(const Events& events, const Expected& expected) {
  std::string wrong;
  each<event::WentOn>(events, [&](const event::WentOn& w, Instant) {
    if (w.fresh && expected.sync[static_cast<std::size_t>(w.own.value)]) return;
    if (w.waited > expected.delay_max && wrong.empty()) {
      wrong = "worker " + to_string(w.rank) + " waited " + std::to_string(seconds(w.waited)) + " s at version " +
              to_string(w.own) + ", no sync";
    }
  });
  return wrong;
}

std::string check_termination(const Events& events, const Expected& expected) {
  std::set<Rank> over;
  std::map<Rank, Version> own;
  std::string wrong;
  each<event::Died>(events, [&](const event::Died& d, Instant) { over.insert(d.rank); });
  each<event::Left>(events, [&](const event::Left& l, Instant) { over.insert(l.rank); });
  each<event::WentOn>(events, [&](const event::WentOn& w, Instant) {
    if (w.end) over.insert(w.rank);
    Version& last = own.try_emplace(w.rank, Version{-1}).first->second;
    if (w.own <= last) wrong = "worker " + to_string(w.rank) + " went on from iteration " + to_string(w.own) + " twice";
    if (expected.merges && !expected.faults && w.next.value != w.own.value + 1)
      wrong = "worker " + to_string(w.rank) + " skipped an iteration";
    last = w.own;
  });
  for (std::size_t i = 0; i < expected.node_of.size() && wrong.empty(); ++i) {
    const Rank rank{static_cast<std::int32_t>(i)};
    if (!over.contains(rank))
      wrong = "worker " + to_string(rank) + " never ends; it is at iteration " + to_string(own[rank]);
  }
  return wrong;
}

std::vector<std::string> check_all(const Events& events, const Expected& expected) {
  std::vector<std::string> wrong;
  for (const auto check :
       {check_exactly_once, check_same_contributions, check_mass, check_lag, check_nobody_waits, check_termination}) {
    if (std::string text = check(events, expected); !text.empty()) wrong.push_back(std::move(text));
  }
  return wrong;
}

}  // namespace paceline::sim
