#include <algorithm>
#include <cmath>

#include "tests/support/reference/internal.h"

// Who mixes with whom, with which weights.

namespace paceline::reference {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }
int wrapped(int i, int n) { return ((i % n) + n) % n; }

Matrix zeros(int n) { return Matrix(at(n), Vector(at(n), 0.0)); }

Matrix ring(int n) {
  Matrix w = zeros(n);
  for (int i = 0; i < n; ++i) {
    std::vector<int> members{i, wrapped(i + 1, n), wrapped(i - 1, n)};
    std::sort(members.begin(), members.end());
    members.erase(std::unique(members.begin(), members.end()), members.end());
    for (const int j : members) w[at(i)][at(j)] = 1.0 / static_cast<double>(members.size());
  }
  return w;
}

/// Hops of the odd ranks: +1, -1, +3, -3, +5, -5, +9, .. without repetitions mod n; even ranks mirror them.
Matrix bipartite(int n, int t) {
  std::vector<int> hops;
  for (int i = 0; (1 << i) <= n - 1; ++i) {
    const int distance = i == 0 ? 1 : 1 + (1 << i);
    for (const int hop : {wrapped(distance, n), wrapped(-distance, n)})
      if (std::find(hops.begin(), hops.end(), hop) == hops.end()) hops.push_back(hop);
  }
  Matrix w = zeros(n);
  for (int i = 1; i < n; i += 2) {
    const int j = wrapped(i + hops[at(t) % hops.size()], n);
    for (const auto& [a, b] : Edges{{i, i}, {i, j}, {j, i}, {j, j}}) w[at(a)][at(b)] = 0.5;
  }
  return w;
}

Matrix matched(const Run& run, int t) {
  const Strategy& s = run.strategy;
  Matrix w = zeros(run.workers);
  for (int i = 0; i < run.workers; ++i) w[at(i)][at(i)] = 1;
  for (const int matching : s.active[at(t) % s.active.size()]) {
    for (const auto& [a, b] : s.matchings[at(matching)]) {
      w[at(a)][at(b)] += s.alpha;
      w[at(b)][at(a)] += s.alpha;
      w[at(a)][at(a)] -= s.alpha;
      w[at(b)][at(b)] -= s.alpha;
    }
  }
  return w;
}

/// Clusters are contiguous, the last one is smaller where the size does not divide n.
Matrix clusters(const Strategy& s, int n, int t) {
  const int done = t % s.k2 + 1;  // Since the last average of all.
  const int size = done == s.k2 ? n : done % s.k1 == 0 ? s.group : 1;
  Matrix w = zeros(n);
  for (int i = 0; i < n; ++i) {
    const int first = i - i % size, end = std::min(first + size, n);
    for (int j = first; j < end; ++j) w[at(i)][at(j)] = 1.0 / (end - first);
  }
  return w;
}

/// Distances of step t, none a multiple of n, none twice.
std::vector<int> hops_at(const Strategy& s, int n, int t) {
  std::vector<int> powers;
  const int base = s.hops == Strategy::Hops::pow2 ? 2 : s.peers + 1;
  for (int power = 1; power < n; power *= base) powers.push_back(power);
  std::vector<int> hops;
  for (int r = 0; r < s.peers && !powers.empty(); ++r) {
    const int hop = s.hops == Strategy::Hops::pow2 ? powers[at(t + r) % powers.size()]
                                                   : (r + 1) * powers[at(t) % powers.size()] % n;
    if (hop != 0 && std::find(hops.begin(), hops.end(), hop) == hops.end()) hops.push_back(hop);
  }
  return hops;
}

}  // namespace

Matrix mixing(const Run& run, Kind kind, int t) {
  const int n = run.workers;
  if (kind == Kind::matcha) return matched(run, t);
  if (kind == Kind::hier_avg) return clusters(run.strategy, n, t);
  if (run.strategy.graph == Strategy::Graph::bipartite && n > 1) return bipartite(n, t);
  if (run.strategy.graph == Strategy::Graph::complete) return Matrix(at(n), Vector(at(n), 1.0 / n));
  return ring(n);
}

Digraph out_neighbours(const Run& run, int t) {
  const Strategy& s = run.strategy;
  Digraph out(at(run.workers));
  for (int i = 0; i < run.workers; ++i) {
    if (s.digraphs.empty()) {
      for (const int hop : hops_at(s, run.workers, t)) out[at(i)].push_back((i + hop) % run.workers);
    } else {
      for (const int j : s.digraphs[at(t) % s.digraphs.size()][at(i)])
        if (j != i) out[at(i)].push_back(j);
    }
  }
  return out;
}

Matrix push_matrix(const Digraph& out) {
  Matrix w = zeros(static_cast<int>(out.size()));
  for (std::size_t j = 0; j < out.size(); ++j) {
    const double share = 1.0 / static_cast<double>(out[j].size() + 1);
    w[j][j] = share;
    for (const int i : out[j]) w[at(i)][j] = share;
  }
  return w;
}

std::vector<int> members_of(const Matrix& w, int i) {
  std::vector<int> members;
  for (int j = 0; j < static_cast<int>(w.size()); ++j)
    if (j == i || w[at(i)][at(j)] != 0) members.push_back(j);
  return members;
}

std::int64_t edges_of(const Matrix& w) {
  std::int64_t edges = 0;
  for (int i = 0; i < static_cast<int>(w.size()); ++i) edges += static_cast<std::int64_t>(members_of(w, i).size()) - 1;
  return edges;
}

std::vector<Vector> mixed(const Matrix& w, const std::vector<Vector>& x) {
  std::vector<Vector> result;
  for (const Vector& row : w) {
    Vector sum(x.front().size(), 0.0);
    for (std::size_t j = 0; j < x.size(); ++j)
      if (row[j] != 0) sum = plus(std::move(sum), x[j], row[j]);
    result.push_back(std::move(sum));
  }
  return result;
}

}  // namespace paceline::reference
