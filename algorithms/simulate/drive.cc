#include "algorithms/simulate/drive.h"

#include "algorithms/plan.h"
#include "algorithms/simulate/asynchronous_simulation.h"
#include "algorithms/simulate/exchange_simulation.h"
#include "algorithms/simulate/mix_simulation.h"
#include "algorithms/simulate/simulation.h"
#include "algorithms/topology/pairs.h"

namespace paceline::simulate {

using algorithms::Coordination;
using algorithms::Strategy;

Result<Outcome> drive(World world, Learner learner, const Strategy& strategy, std::uint64_t seed) {
  const auto workers = static_cast<std::int32_t>(world.node_of.size());
  for (const auto& tier : strategy.tiers) {
    if (tier.period.adapts()) learner.loss_window = tier.period.loss_window;
  }
  auto mixing = algorithms::make_mix_plan(strategy, workers, seed);
  if (!mixing) return tl::unexpected(mixing.error());

  switch (algorithms::coordination(strategy)) {
    case Coordination::rounds: {
      Rules rules{.strategy = strategy, .mixing = std::move(*mixing)};
      Strategy rounds = strategy;
      if (rules.mixing) {  // Every update ends for all at once, whoever mixes after it.
        rounds.tiers.resize(1);
        rounds.tiers.front().period = {};
        rounds.tiers.front().groups = {};
      }
      rules.plan = [rounds, workers, seed, total = world.last.value + 1] {
        return algorithms::make_plan(rounds, workers, total, {.final_sync = false, .seed = seed});
      };
      Simulation simulation(std::move(world), std::move(learner), std::move(rules));
      PACELINE_TRY(simulation.run());
      return simulation.take_outcome();
    }
    case Coordination::mixing: {
      if (world.network.takes_time()) {  // Every worker on a host of its own: whatever goes to another one travels.
        world.nodes = workers;
        for (std::int32_t i = 0; i < workers; ++i) world.node_of[static_cast<std::size_t>(i)] = NodeId{i};
      }
      MixRules rules{.order = strategy.order, .push_sum = strategy.push_sum, .bound = strategy.overlap};
      rules.plan = std::move(*mixing);
      rules.groups = strategy.tiers[0].groups.kind == algorithms::Groups::Kind::clusters;
      rules.period = [steps = strategy.tiers.back().period.steps] { return steps; };
      return MixSimulation(std::move(world), std::move(learner), std::move(rules)).run();
    }
    case Coordination::exchanges:
      return ExchangeSimulation(std::move(world), std::move(learner), std::move(*mixing), strategy).run();
    case Coordination::server:
    case Coordination::pairs: break;
  }
  AsynchronousRules rules{.bound = strategy.server.bound, .scale = strategy.server.scale};
  if (algorithms::coordination(strategy) == Coordination::pairs) {
    const auto pairing = strategy.tiers[0].groups.random ? algorithms::Pairing::random : algorithms::Pairing::bipartite;
    rules.partner = [=](Rank rank, Version step) { return algorithms::partner(seed, workers, rank, step, pairing); };
  }
  return simulate_asynchronous(world, learner, rules);
}

}  // namespace paceline::simulate
