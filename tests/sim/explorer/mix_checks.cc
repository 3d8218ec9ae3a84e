#include <algorithm>
#include <cmath>

#include "tests/sim/explorer/mix_shell.h"

// What must hold, whatever the order of events.

namespace paceline::explorer {
namespace {

using Phase = MixWorker::Phase;

bool is_near(double a, double b) { return std::abs(a - b) < 1e-12; }

std::string name(const Contribution& c) {
  return "the contribution of worker " + to_string(c.first) + " to version " + to_string(c.second);
}

}  // namespace

double MixShell::weight(Rank to, Rank from, Version v) const {
  for (const Share& share : plan_->row(to, v)) {
    if (share.from == from) return share.weight;
  }
  return 0;
}

/// Once, in order, when it is waited for, with all its shares here.
void MixShell::check_mix(const MixState& s, const MixAgent& agent, const MixEngine::Mix& a) {
  const MixWorker& w = worker(s, a.rank);
  const std::string at = "version " + to_string(a.version) + " of worker " + to_string(a.rank) + ": ";
  expect(!w.dead && w.phase == Phase::waiting && w.t == a.version, at + "mixed though it is not waited for");
  for (const Share& share : a.row) {
    expect(agent.held.contains({share.from, a.version}),
           at + "mixed without the contribution of worker " + to_string(share.from));
  }
}

/// Exactly the plan's shares. What one that is gone gives no more is left out. Where columns add up, what it takes no
/// more stays with the sender; else what it gives no more the worker takes of its own.
void MixShell::check_row(const MixState&, const MixAgent& agent, const MixEngine::Mix& a) {
  std::map<Rank, double> row, expected;
  for (const Share& share : a.row) row[share.from] += share.weight;
  for (const Share& share : plan_->row(a.rank, a.version)) expected[share.from] = share.weight;
  for (const auto& [rank, end] : agent.gone) {
    const bool gives = a.version <= end.version || !expected.contains(rank);
    if (!gives && !model_.columns_add_up) expected[a.rank] += expected[rank];
    if (!gives) expected.erase(rank);
    if (model_.columns_add_up && a.version > end.mixed) expected[a.rank] += weight(rank, a.rank, a.version);
  }
  expect(
      row.size() == a.row.size() && row.size() == expected.size() &&
          std::equal(row.begin(), row.end(), expected.begin(),
                     [](const auto& x, const auto& y) { return x.first == y.first && is_near(x.second, y.second); }),
      "version " + to_string(a.version) + " of worker " + to_string(a.rank) + ": mixed from other shares than its own");
}

/// Whoever takes from it here has mixed, or is gone.
void MixShell::check_release(const MixState& s, NodeId id, const Contribution& c) {
  expect(agent(s, id).held.contains(c), name(c) + " is released where it is not held");
  for (int i = 0; i < workers(); ++i) {
    const MixWorker& w = worker(s, Rank{i});
    if (node(Rank{i}) != id || w.dead || weight(Rank{i}, c.first, c.second) == 0) continue;
    expect(w.t > c.second, name(c) + " is released before worker " + std::to_string(i) + " has mixed it");
  }
}

/// What one takes that may be lost is nobody's affair: it takes it with it.
void MixShell::note_taken(MixState& s, const MixEngine::Mix& a) {
  if (may_be_lost(a.rank.value)) return;
  std::set<Rank> members;
  for (const Share& share : a.row) {
    s.taken[{share.from, a.version}] += share.weight;
    members.insert(share.from);
  }
  if (!model_.alike) return;
  const auto& first = s.mixtures.try_emplace(a.version, members).first->second;
  expect(first == members, "version " + to_string(a.version) + " of worker " + to_string(a.rank) +
                               ": mixed from others than another worker, where all mix the same");
}

void MixShell::check_columns(MixState& s) {
  const auto is_open = [&](Version v) {
    for (int i = 0; i < workers(); ++i) {
      const MixWorker& w = worker(s, Rank{i});
      if (!w.dead && !may_be_lost(i) && w.t <= v) return true;
    }
    return false;
  };
  for (Version v{0}; v <= model_.last && !is_open(v); v = v.next()) {
    check_column(s, v);
    std::erase_if(s.taken, [&](const auto& entry) { return entry.first.second == v; });
    s.mixtures.erase(v);
  }
}

/// When all that live have mixed a version, nobody's contribution has been taken more than whole; where columns add up
/// every contribution of one that lives has been taken whole: only what went to one that died, or is or may be lost,
/// before the sender's agent heard of it may be missing.
void MixShell::check_column(const MixState& s, Version v) {
  if (!model_.columns_add_up) return;
  for (int i = 0; i < workers(); ++i) {
    const Rank from{i};
    const auto taken = s.taken.find({from, v});
    if (taken == s.taken.end()) continue;  // Checked, or nothing was given.
    const double given = taken->second;
    expect(given < 1 + 1e-12, name({from, v}) + " was taken " + std::to_string(given) + " times");
    if (worker(s, from).dead || may_be_lost(i)) continue;
    std::vector<double> possible{given};
    for (int j = 0; j < workers(); ++j) {
      const MixWorker& w = worker(s, Rank{j});
      if (j == i || !(may_be_lost(j) || (w.dead && w.t <= v))) continue;
      for (std::size_t k = possible.size(); k > 0; --k) possible.push_back(possible[k - 1] + weight(Rank{j}, from, v));
    }
    expect(std::any_of(possible.begin(), possible.end(), [](double sum) { return is_near(sum, 1); }),
           name({from, v}) + " was taken " + std::to_string(given) + " times");
  }
}

void MixShell::check_end(const MixState& s) {
  bool somebody_rests = false;
  for (int i = 0; i < workers(); ++i) {
    const MixWorker& w = worker(s, Rank{i});
    const bool rests = w.paused && !w.dead;
    somebody_rests = somebody_rests || rests;
    expect(w.dead || rests || w.phase == Phase::over || is_of_lost(s, i),
           "worker " + std::to_string(i) + " waits for ever at version " + to_string(w.t));
  }
  check_views(s);
  if (somebody_rests) return;
  for (std::int32_t n = 0; n < model_.nodes; ++n) {
    if (s.network.lost && NodeId{n} == last()) continue;
    for (const Contribution& c : agent(s, NodeId{n}).held) expect(false, name(c) + " is held at the end");
  }
}

}  // namespace paceline::explorer
