#include "cli/recorded/run_times.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "algorithms/plan.h"
#include "algorithms/strategy.h"
#include "runtime/base/json.h"
#include "scheduler/rounds/round_engine.h"

namespace paceline::recorded {
namespace {

using nlohmann::json;
using scheduler::Decision;
using scheduler::RoundEngine;
using Kind = Decision::Kind;

using Group = std::pair<Version, std::int32_t>;
struct Punctual {
  Rank rank;
  Instant arrived;
};
/// Of all nodes together: who was there in time for a round.
using PunctualOf = std::map<Group, std::vector<Punctual>>;

/// The strategy's plan, but for adaptive periods: there are rounds where the run had some.
class RecordedPlan final : public scheduler::RoundPlan {
 public:
  RecordedPlan(std::unique_ptr<RoundPlan> plan, std::set<Version> versions, Version last)
      : plan_(std::move(plan)), versions_(std::move(versions)), last_(last) {}
  scheduler::Payload payload() const override { return plan_->payload(); }
  scheduler::Round round(Version v) const override {
    auto round = plan_->round(v);
    if (!versions_.contains(v)) {
      round.kind = scheduler::Round::Kind::none;
    } else if (round.kind == scheduler::Round::Kind::none) {
      round = plan_->round(last_);
    }
    return round;
  }
  std::vector<std::vector<Rank>> groups(Version v) const override { return plan_->groups(v); }
  Version next_round(Version v) const override {
    const auto it = versions_.lower_bound(v);
    return it == versions_.end() ? last_.next() : *it;
  }
  bool publishes_every_iteration() const override { return plan_->publishes_every_iteration(); }
  void on_executed(Version, const scheduler::RoundSums&) override {}
  std::int64_t period() const override { return plan_->period(); }
  std::int32_t buffers() const override { return plan_->buffers(); }
  bool asks_who_is_left() const override { return plan_->asks_who_is_left(); }

 private:
  std::unique_ptr<RoundPlan> plan_;
  std::set<Version> versions_;
  Version last_;
};

std::set<Version> rounds_of(const std::vector<Decision>& decisions) {
  std::set<Version> versions;
  for (const auto& d : decisions)
    if (d.kind == Kind::sealed) versions.insert(d.version);
  return versions;
}

/// The core of one node, and what its workers wait for.
class Node {
 public:
  Node(RoundEngine::Options options, std::unique_ptr<scheduler::RoundPlan> plan)
      : engine_(std::move(options), std::move(plan)) {}

  void tell(const Decision& d, std::map<Rank, WorkerTime>& times, PunctualOf& punctual) {
    if (d.kind == Kind::arrived) arrived_[d.rank] = {d.version, d.at};
    if (d.kind == Kind::partial) ready_[{d.version, d.group}] = d.at;
    if (d.kind == Kind::sealed) on_sealed(d, times, punctual);
    for (const auto& action : step(d)) {
      const auto* verdict = std::get_if<RoundEngine::Verdict>(&action);
      const auto it = verdict ? arrived_.find(verdict->rank) : arrived_.end();
      if (it == arrived_.end()) continue;
      const auto group = group_of_.find(verdict->rank);
      Instant ready = group == group_of_.end() ? it->second.second : ready_[group->second];
      ready = std::clamp(ready, it->second.second, std::max(d.at, it->second.second));
      times[verdict->rank].waiting_s += seconds(ready - it->second.second);
    }
  }
  Version done() const { return engine_.done(); }

 private:
  void on_sealed(const Decision& d, std::map<Rank, WorkerTime>& times, PunctualOf& punctual) {
    const Group group{d.version, d.group};
    ready_[group] = d.at;  // Partial sums that came before are no reason to wait.
    for (const auto& c : d.contributions) {
      group_of_[c.rank] = group;
      auto& worker = times[c.rank];
      worker.contributions += c.iteration ? 1 : 0;
      worker.missed += c.iteration ? 0 : 1;
      worker.late += c.iteration && *c.iteration < d.version ? 1 : 0;
      const auto it = arrived_.find(c.rank);
      if (it != arrived_.end() && it->second.first == d.version) punctual[group].push_back({c.rank, it->second.second});
    }
  }

  RoundEngine::Actions step(const Decision& d) {
    switch (d.kind) {
      case Kind::arrived: return engine_.on_arrival(d.rank, d.version, d.took, d.at);
      case Kind::activated: return engine_.on_activation(d.node, d.node, d.version, d.at);
      case Kind::counted: return engine_.on_count(d.version, d.at);
      case Kind::partial: return engine_.on_partial(d.node, d.version, d.group, d.at);
      case Kind::sealed: {
        std::vector<std::optional<Version>> contributed;
        for (const auto& c : d.contributions) contributed.push_back(c.iteration);
        return engine_.on_sealed(d.version, d.group, contributed, d.at);
      }
      case Kind::executed: return engine_.on_executed(d.version, d.group, {}, d.at);
      case Kind::merged: return engine_.on_merged(d.rank, d.at);
      case Kind::gone: return engine_.on_gone(d.rank, d.at);
      case Kind::gone_elsewhere: return engine_.on_gone_elsewhere(d.rank, d.at);
      case Kind::returned: return engine_.on_return(d.rank, d.at);
      case Kind::back_elsewhere: engine_.on_back_elsewhere(d.rank); return {};
      case Kind::node_gone: return engine_.on_node_gone(d.node, d.at);
      case Kind::looked: return engine_.tick(d.at);
      case Kind::ends: engine_.end_at(d.version); return {};
      default: return {};
    }
    return {};
  }

  RoundEngine engine_;
  std::map<Rank, std::pair<Version, Instant>> arrived_;
  std::map<Rank, Group> group_of_;  // The newest seal that a worker was in.
  std::map<Group, Instant> ready_;  // When nobody was waited for any more.
};

/// Where there are no rounds: whose arrivals a worker waits for after an iteration, as far as a rule says so. (Whom a
/// pair's meeting waits for, and shares that may come later, is a matter of the moment: this counts as averaging.)
using Arrival = std::pair<Rank, Version>;
using AwaitedBy = std::function<std::vector<Arrival>(Rank, Version)>;

Result<AwaitedBy> awaited_by(const algorithms::Strategy& strategy, std::int32_t workers, std::uint64_t seed) {
  using algorithms::Coordination;
  const auto coordination = algorithms::coordination(strategy);
  if (const auto bound = strategy.server.bound; coordination == Coordination::server && bound)
    return [workers, bound = *bound](Rank, Version v) {
      std::vector<Arrival> all;
      for (std::int32_t i = 0; i < workers; ++i) all.push_back({Rank{i}, Version{v.value - bound}});
      return all;
    };
  const bool exchanges = coordination == Coordination::exchanges;
  if ((!exchanges && coordination != Coordination::mixing && !algorithms::mixes_batches(strategy)) ||
      strategy.overlap > 0)
    return [](Rank, Version) { return std::vector<Arrival>{}; };
  auto plan = algorithms::make_mix_plan(strategy, workers, seed);
  if (!plan) return tl::unexpected(plan.error());
  // Combine then adapt takes the models with which the neighbours began the iteration, an exchange those that they sent
  // `delay` iterations ago.
  const auto& tier = strategy.tiers.front();
  const std::int64_t before = exchanges ? tier.delay : strategy.order == algorithms::Order::combine_then_adapt ? 1 : 0;
  const std::int64_t every = exchanges ? tier.period.steps / std::max(1, tier.fragments) : 1;
  return
      [plan = std::shared_ptr<scheduler::MixPlan>(std::move(*plan)), before, every, exchanges](Rank rank, Version v) {
        std::vector<Arrival> neighbours;
        const Version sent{v.value - before};
        if (exchanges && (sent.value < 0 || (sent.value + 1) % every != 0)) return neighbours;
        for (const auto& share : plan->row(rank, exchanges ? Version{sent.value / every} : v))
          neighbours.push_back({share.from, sent});
        return neighbours;
      };
}

void add_arrivals(const std::vector<Decision>& decisions, Version first, std::map<Arrival, Instant>& arrivals) {
  for (const auto& d : decisions)
    if (d.kind == Kind::arrived && d.version >= first) arrivals[{d.rank, d.version}] = d.at;
}

/// The last of those that it waits for lets a worker go on.
void add_waits(const std::map<Arrival, Instant>& arrivals, const AwaitedBy& awaited,
               std::map<Rank, WorkerTime>& times) {
  for (const auto& [arrival, at] : arrivals) {
    auto& worker = times[arrival.first];
    ++worker.contributions;
    auto last = std::pair(arrival.first, at);
    for (const auto& needed : awaited(arrival.first, arrival.second))
      if (const auto it = arrivals.find(needed); it != arrivals.end() && it->second > last.second)
        last = {needed.first, it->second};
    worker.waiting_s += seconds(last.second - at);
    times[last.first].awaited_s += seconds(last.second - at);
  }
}

void add_trace(const RunTrace& trace, std::map<Rank, WorkerTime>& times) {
  for (const Track& track : trace.tracks) {
    const auto it = times.find(Rank{track.rank});
    if (it == times.end()) continue;
    WorkerTime& worker = it->second;
    double waited = 0;
    for (const Span& span : track.spans) {
      const double length = span.end_s - span.begin_s;
      switch (span.activity) {
        case Activity::compute: worker.compute_s += length; break;
        case Activity::abandoned: worker.abandoned_s += length; break;
        case Activity::evaluate:
        case Activity::hold: worker.evaluation_s += length; break;
        case Activity::wait: waited += length; break;
        case Activity::average:
        case Activity::merge: break;
      }
    }
    worker.waiting_s = std::min(worker.waiting_s, waited);
    worker.averaging_s = waited - worker.waiting_s;
  }
}

}  // namespace

void WorkerTime::add(const WorkerTime& other) {
  compute_s += other.compute_s;
  abandoned_s += other.abandoned_s;
  waiting_s += other.waiting_s;
  averaging_s += other.averaging_s;
  evaluation_s += other.evaluation_s;
  awaited_s += other.awaited_s;
  contributions += other.contributions;
  late += other.late;
  missed += other.missed;
}

Result<std::vector<WorkerTime>> reenact(const RecordedRun& run, const RunTrace& trace) {
  const auto workers = static_cast<std::int32_t>(run.node_of.size());
  std::map<Rank, WorkerTime> times;
  for (std::int32_t rank = 0; rank < workers; ++rank) times[Rank{rank}].rank = rank;
  PunctualOf punctual;
  std::map<Arrival, Instant> arrivals;  // Where there are no rounds.
  AwaitedBy awaited;
  RoundEngine::Options options;
  for (const std::int32_t node : run.node_of) options.node_of.emplace_back(node);
  for (const auto& [node, record] : run.records) {
    const json head = parse_json(record.head);
    if (!head.is_object()) return fail(ErrorKind::invalid, "the head of the recorded decisions is no JSON object");
    auto strategy = algorithms::parse_strategy(head.value("strategy", std::string()), workers);
    if (!strategy) return tl::unexpected(strategy.error());
    const auto seed = head.value("seed", std::uint64_t{0});
    if (algorithms::has_own_pace(*strategy, workers)) {
      add_arrivals(record.decisions, Version{head.value("first", std::int64_t{0})}, arrivals);
      auto awaited_here = awaited_by(*strategy, workers, seed);
      if (!awaited_here) return tl::unexpected(awaited_here.error());
      awaited = std::move(*awaited_here);
      continue;
    }
    if (!strategy->brings_batches()) strategy->batches = head.value("accumulate", 1);
    options.self = NodeId{node};
    options.first = Version{head.value("first", std::int64_t{0})};
    options.last = Version{head.value("updates", std::int64_t{1}) - 1};
    const auto versions = rounds_of(record.decisions);
    auto plan =
        algorithms::make_plan(*strategy, workers, options.last.value + 1, {.first = options.first, .seed = seed});
    Node core(options, std::make_unique<RecordedPlan>(std::move(plan), versions, options.last));
    for (const auto& decision : record.decisions) core.tell(decision, times, punctual);
    if (versions.empty() || core.done() != *versions.rbegin())
      return fail(ErrorKind::invalid, "the recorded decisions of node " + std::to_string(node) +
                                          " do not lead to the end of the run: they are of another Paceline");
  }
  add_waits(arrivals, awaited, times);
  for (const auto& [group, there] : punctual) {
    const auto last = std::max_element(there.begin(), there.end(),
                                       [](const auto& a, const auto& b) { return a.arrived < b.arrived; });
    for (const auto& other : there) times[last->rank].awaited_s += seconds(last->arrived - other.arrived);
  }
  add_trace(trace, times);
  std::vector<WorkerTime> all;
  for (const auto& [rank, worker] : times) all.push_back(worker);
  return all;
}

}  // namespace paceline::recorded
