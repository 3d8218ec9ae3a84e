#include "scheduler/mixing/batch_engine.h"

#include <algorithm>
#include <sstream>

namespace paceline::scheduler {
namespace {

// How long a mini-batch under way at the signal may take beyond it: others wait for that.
constexpr Duration kGraceMin = std::chrono::milliseconds(50);
constexpr int kGraceBodies = 2;

Weighing weighing_of(const BatchEngine::Options& options) {
  using Weight = BatchEngine::Weight;
  Weighing weighing{.divisor = Weighing::Divisor::members, .bodies = options.batches};
  if (options.weight == Weight::of_all) weighing.divisor = Weighing::Divisor::bodies;
  weighing.by_bodies = options.weight == Weight::share_squared;
  return weighing;
}

}  // namespace

BatchEngine::BatchEngine(Options options) : options_(std::move(options)), weighing_(weighing_of(options_)) {}

BatchEngine::Step BatchEngine::step(Rank rank, Version v, std::int32_t bodies, std::int64_t bodies_of_all) const {
  const auto members = static_cast<std::int64_t>(options_.node_of.size());
  return {rank, v, bodies, weighing_.of_own_step(bodies, {.bodies = bodies_of_all}, members)};
}

/// Those that have a worker left.
std::set<NodeId> BatchEngine::others() const {
  std::set<NodeId> nodes;
  for (std::size_t i = 0; i < options_.node_of.size(); ++i)
    if (!gone_.contains(Rank{static_cast<std::int32_t>(i)})) nodes.insert(options_.node_of[i]);
  nodes.erase(options_.self);
  return nodes;
}

void BatchEngine::on_begun(Rank rank, Version v, Instant now) {
  Worker& w = workers_[rank];
  w.update = v;
  w.computing = true;
  w.since = now;
}

void BatchEngine::on_pace(Rank rank, Duration each) {
  workers_[rank].pace.add(each);
  pace_.add(each);
}

std::optional<Version> BatchEngine::computing(Rank rank) const {
  const auto it = workers_.find(rank);
  return it != workers_.end() && it->second.computing ? std::optional(it->second.update) : std::nullopt;
}

BatchEngine::Actions BatchEngine::on_done(Rank rank, Version v, std::int32_t bodies, Instant now) {
  Worker& w = workers_[rank];
  if (!w.computing || w.update != v) return {};
  w.computing = false;
  Actions out;
  if (bodies == options_.batches && !is_over(v)) {
    out = signal(v, now);
    for (const NodeId node : others()) out.push_back(Tell{node, v, {}});
  }
  if (bodies == 0) {
    out.push_back(StandIn{rank, v});
  } else if (options_.weight != Weight::of_all) {
    out.push_back(step(rank, v, bodies, 0));
  }
  if (options_.weight != Weight::of_all) return out;
  tallies_[v].here[rank] = bodies;
  for (auto& action : look_at(v)) out.push_back(action);
  return out;
}

BatchEngine::Actions BatchEngine::on_signal(Version v, Instant now) { return is_over(v) ? Actions{} : signal(v, now); }

BatchEngine::Actions BatchEngine::signal(Version v, Instant now) {
  over_ = v;
  for (auto& [rank, w] : workers_) w.since = std::max(w.since, now);
  return {Signal{v}};
}

BatchEngine::Actions BatchEngine::on_counts(NodeId from, Version v, std::int64_t bodies) {
  if (options_.weight != Weight::of_all || bodies < 0 || (weighed_ && v <= *weighed_)) return {};
  tallies_[v].elsewhere.try_emplace(from, bodies);
  return look_at(v);
}

BatchEngine::Actions BatchEngine::on_gone(Rank rank) {
  gone_.insert(rank);
  workers_.erase(rank);
  Actions out;
  std::vector<Version> open;
  for (const auto& [v, tally] : tallies_) open.push_back(v);
  for (const Version v : open)
    for (auto& action : look_at(v)) out.push_back(action);
  return out;
}

/// Whether everything that was done of v is known.
BatchEngine::Actions BatchEngine::look_at(Version v) {
  Actions out;
  Tally& tally = tallies_[v];
  std::set<NodeId> missing;  // Agents with somebody alive, that have not told.
  bool all_here = true;
  for (std::size_t i = 0; i < options_.node_of.size(); ++i) {
    const Rank rank{static_cast<std::int32_t>(i)};
    if (gone_.contains(rank)) continue;
    const NodeId node = options_.node_of[i];
    if (node == options_.self) {
      all_here = all_here && tally.here.contains(rank);
    } else if (!tally.elsewhere.contains(node)) {
      missing.insert(node);
    }
  }
  if (!tally.total && all_here) {
    tally.total = 0;
    for (const auto& [rank, bodies] : tally.here) *tally.total += bodies;
    for (const NodeId node : others()) out.push_back(Tell{node, v, tally.total});
  }
  if (!tally.total || !missing.empty()) return out;
  std::int64_t total = *tally.total;
  for (const auto& [node, bodies] : tally.elsewhere) total += bodies;
  for (const auto& [rank, bodies] : tally.here)
    if (bodies > 0 && !gone_.contains(rank)) out.push_back(step(rank, v, bodies, total));
  tallies_.erase(v);
  weighed_ = v;
  return out;
}

std::vector<BatchEngine::Unanswered> BatchEngine::unanswered() const {
  std::vector<Unanswered> out;
  for (const auto& [rank, w] : workers_) {
    if (!options_.drops || !w.computing || !is_over(w.update)) continue;
    const Duration grace = std::max<Duration>(kGraceMin, kGraceBodies * std::max(w.pace.get(), pace_.get()));
    out.push_back({rank, w.update, w.since + grace});
  }
  return out;
}

std::vector<BatchEngine::Awaited> BatchEngine::awaited() const {
  std::vector<Awaited> out;
  if (options_.drops || options_.weight != Weight::of_all) return out;
  for (const auto& [rank, w] : workers_)
    if (w.computing && is_over(w.update)) out.push_back({rank, w.update, w.since});
  return out;
}

std::optional<Instant> BatchEngine::next_deadline() const {
  std::optional<Instant> next;
  for (const auto& each : unanswered()) next = earlier(next, each.until);
  return next;
}

std::string BatchEngine::fingerprint() const {
  std::ostringstream s;
  s << over_.value_or(Version{-9}).value << ' ' << weighed_.value_or(Version{-9}).value << '~' << pace_.get().count();
  for (const auto& [rank, w] : workers_)
    s << 'w' << rank.value << ':' << w.update.value << ',' << w.computing << ',' << w.since.time_since_epoch().count()
      << '~' << w.pace.get().count();
  for (const auto& [v, tally] : tallies_) {
    s << 't' << v.value << ':' << tally.total.value_or(-1);
    for (const auto& [rank, bodies] : tally.here) s << 'h' << rank.value << '=' << bodies;
    for (const auto& [node, bodies] : tally.elsewhere) s << 'n' << node.value << '=' << bodies;
  }
  for (const Rank rank : gone_) s << 'g' << rank.value;
  return s.str();
}

}  // namespace paceline::scheduler
