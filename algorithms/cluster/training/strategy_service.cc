#include "algorithms/cluster/training/strategy_service.h"

#include <algorithm>
#include <span>
#include <utility>

#include "algorithms/outer.h"
#include "algorithms/plan.h"
#include "algorithms/topology/pairs.h"
#include "algorithms/weighing.h"
#include "scheduler/asynchronous/pair_coordinator.h"
#include "scheduler/asynchronous/server_coordinator.h"
#include "scheduler/mixing/batch_coordinator.h"
#include "scheduler/mixing/exchange_coordinator.h"
#include "scheduler/mixing/mix_coordinator.h"
#include "scheduler/rounds/round_coordinator.h"

namespace paceline::cluster {
namespace {

using algorithms::Coordination;
using scheduler::AveragingService;
using scheduler::BatchCoordinator;
using scheduler::ExchangeCoordinator;
using scheduler::Lateness;
using scheduler::MixCoordinator;
using scheduler::PairCoordinator;
using scheduler::RoundCoordinator;
using scheduler::ServerCoordinator;
using scheduler::Workplace;

template <class T>
std::span<T> as(std::span<std::byte> bytes) {
  return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
}

/// On an agent; of a rule that does not ask for the learning rate.
scheduler::OuterModel::Step outer_step_of(const algorithms::Outer& outer) {
  return [outer](memory::Dtype dtype, std::span<std::byte> model, std::span<std::byte> momentum,
                 std::span<std::byte> mean) {
    if (dtype == memory::Dtype::f64) {
      algorithms::outer_step(outer, as<double>(model), as<double>(momentum), as<double>(mean), 0);
    } else {
      algorithms::outer_step(outer, as<float>(model), as<float>(momentum), as<float>(mean), 0);
    }
  };
}

scheduler::BatchEngine::Weight weight_of(algorithms::Strategy::Normalise reading) {
  switch (reading) {
    case algorithms::Strategy::Normalise::a: return scheduler::BatchEngine::Weight::share_squared;
    case algorithms::Strategy::Normalise::b: break;
    case algorithms::Strategy::Normalise::d: return scheduler::BatchEngine::Weight::of_all;
  }
  return scheduler::BatchEngine::Weight::share;
}

ExchangeCoordinator::Options exchange_options(const StrategyJob& job, std::shared_ptr<const scheduler::MixPlan> plan) {
  const auto& tier = job.strategy.tiers.front();
  ExchangeCoordinator::Options options;
  options.plan = std::move(plan);
  options.every = tier.period.steps / std::max(1, tier.fragments);
  options.parts = tier.fragments;
  options.delay = tier.delay;
  options.keeps = tier.keeps;
  options.momentum = job.strategy.outer.momentum;
  options.rate = job.strategy.outer.rate;
  options.pull = job.strategy.outer.pull;
  options.outer_elements = job.outer_elements;
  return options;
}

MixCoordinator::Options mix_options(const StrategyJob& job, std::shared_ptr<const scheduler::MixPlan> plan) {
  MixCoordinator::Options options;
  options.plan = options.plan_of_all = std::move(plan);
  options.combine_then_adapt = job.strategy.order == algorithms::Order::combine_then_adapt;
  options.push_sum = job.strategy.push_sum;
  options.overlap = job.strategy.overlap;
  options.clusters = job.strategy.tiers.size() > 1;
  options.stands_in = algorithms::mixes_batches(job.strategy);
  options.plan_of = [strategy = job.strategy, seed = job.seed](const std::vector<Rank>& members) {
    return algorithms::mix_plan_of(strategy, members, seed);
  };
  std::vector<Rank> members;
  for (std::size_t rank = 0; rank < job.job.node_of.size(); ++rank)
    if (const Rank one{static_cast<std::int32_t>(rank)}; !job.job.vacant.contains(one)) members.push_back(one);
  if (!job.job.vacant.empty())
    if (auto of_members = options.plan_of(members)) options.plan = std::move(of_members);
  return options;
}

scheduler::BatchEngine::Options batch_options(const StrategyJob& job) {
  scheduler::BatchEngine::Options options{job.job.self, job.job.node_of, job.strategy.batches};
  options.drops = job.strategy.tiers.front().late == Lateness::abandons;
  options.weight = weight_of(job.strategy.normalise);
  return options;
}

RoundCoordinator::Options round_options(const StrategyJob& job) {
  const auto& strategy = job.strategy;
  RoundCoordinator::Options options;
  options.weighing = algorithms::weighing_of(strategy);
  options.adds_own_again = strategy.code_parity;
  if (!options.weighing.by_samples) return options;
  options.outer_step = outer_step_of(strategy.outer);
  options.outer_elements = job.outer_elements;
  return options;
}

/// `invalid`: a graph cannot be read, or does not fit the number of workers.
Result<scheduler::MakeCoordinator> coordinator_of(const StrategyJob& job) {
  const auto& strategy = job.strategy;
  const auto workers = static_cast<std::int32_t>(job.job.node_of.size());
  if (!algorithms::has_own_pace(strategy, workers)) {
    return [strategy, workers, seed = job.seed, options = round_options(job)](Workplace& work) {
      auto plan =
          algorithms::make_plan(strategy, workers, work.job.last.value + 1, {.first = work.job.first, .seed = seed});
      return std::make_unique<RoundCoordinator>(work, options, std::move(plan));
    };
  }
  const auto core = algorithms::coordination(strategy);
  if (core == Coordination::server) {
    const scheduler::ServerEngine::Options options{workers, strategy.server.bound, strategy.server.scale};
    return [options](Workplace& work) { return std::make_unique<ServerCoordinator>(work, options); };
  }
  if (core == Coordination::pairs) {
    const auto pairing =
        strategy.tiers.front().groups.random ? algorithms::Pairing::random : algorithms::Pairing::bipartite;
    const auto partner = [seed = job.seed, workers, pairing](Rank rank, Version t) {
      return algorithms::partner(seed, workers, rank, t, pairing);
    };
    return [partner](Workplace& work) { return std::make_unique<PairCoordinator>(work, partner); };
  }
  auto made = algorithms::make_mix_plan(strategy, workers, job.seed);
  if (!made) return tl::unexpected(made.error());
  const std::shared_ptr<const scheduler::MixPlan> plan = *std::move(made);
  if (core == Coordination::exchanges) {
    return [options = exchange_options(job, plan)](Workplace& work) {
      return std::make_unique<ExchangeCoordinator>(work, options);
    };
  }
  if (!algorithms::mixes_batches(strategy)) {
    return
        [options = mix_options(job, plan)](Workplace& work) { return std::make_unique<MixCoordinator>(work, options); };
  }
  return [options = mix_options(job, plan), batches = batch_options(job)](Workplace& work) {
    return std::make_unique<BatchCoordinator>(work, options, batches);
  };
}

}  // namespace

Result<std::shared_ptr<AveragingService>> make_strategy_service(StrategyJob job, scheduler::TaskGraph& graph,
                                                                collective::Averager& averager,
                                                                scheduler::SendToNode send) {
  const auto make = coordinator_of(job);
  if (!make) return tl::unexpected(make.error());
  return std::make_shared<AveragingService>(std::move(job.job), *make, graph, averager, std::move(send));
}

}  // namespace paceline::cluster
