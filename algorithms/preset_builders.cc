#include "algorithms/preset_builders.h"

#include <algorithm>
#include <utility>

#include "algorithms/groups.h"

namespace paceline::algorithms::build {
namespace {

constexpr auto gradients = Payload::gradients;
constexpr auto models = Payload::models;
constexpr auto all_arrived = Trigger::all_arrived;
constexpr auto first_arrived = Trigger::first_arrived;
constexpr auto waits = Lateness::waits;
constexpr auto abandons = Lateness::abandons;

Groups butterfly(std::int64_t size) {
  return {.kind = Groups::Kind::butterfly, .size = static_cast<std::int32_t>(size)};
}
Period every(std::int64_t steps) { return {.kind = Period::Kind::every, .steps = steps}; }
Period whole_run() { return {.kind = Period::Kind::whole_run}; }

std::optional<Grace> grace(const Values& given) {
  const auto* value = given.get<Grace>("grace");
  return value != nullptr ? std::optional(*value) : std::nullopt;
}

/// `late=skip`: skips. `late=merge`: merges, where a round can fire without the late worker at all.
Lateness lateness(const Values& given, bool can_fire_without) {
  if (given.is("late", "skip")) return Lateness::skips;
  return can_fire_without ? Lateness::merges : waits;
}

/// Models, everybody, every `period`.
Tier average(const Values& given, Period period) {
  const auto limit = grace(given);
  return {.period = period, .trigger = all_arrived, .late = lateness(given, limit.has_value()), .grace = limit};
}
Tier average(Period period) { return {.period = period}; }

Strategy neighbours(Groups groups, Order order) {
  Tier tier;
  tier.groups = std::move(groups);
  return Strategy{.tiers = {tier}, .order = order};
}

}  // namespace

/// Synchronous data parallel SGD.
Result<Strategy> allreduce(const Values&, std::int32_t) {
  return Strategy{.tiers = {{.payload = gradients, .period = every(1), .trigger = all_arrived, .late = waits}}};
}

/// Local SGD, PASGD, K-AVG; with period=run one-shot averaging.
Result<Strategy> local_sgd(const Values& given, std::int32_t) {
  return Strategy{.tiers = {average(given, given.is("period", "run") ? whole_run() : every(given.integer("period")))}};
}

Result<Strategy> one_shot(const Values&, std::int32_t) { return Strategy{.tiers = {average(whole_run())}}; }

/// Post-local SGD (Lin et al. 2020): gradients are averaged for `warmup` steps, then models every `period`.
Result<Strategy> post_local(const Values& given, std::int32_t) {
  return Strategy{.tiers = {{.payload = gradients}, average(given, every(given.integer("period")))},
                  .warmup = given.integer("warmup")};
}

/// WAGMA-SGD (Li et al., Alg. 2): group averaging that waits for nobody, a global average every `sync` steps.
/// late=skip, grace and strided groups are ours: for workers that are always slow, frozen or dead, and for any number.
Result<Strategy> wagma(const Values& given, std::int32_t workers) {
  const bool strided = given.is("grouping", "strided");
  // sqrt(P) by default; where P is no power of two parse_strategy refuses butterflies, whatever the size.
  std::int64_t size = 2;
  if (!given.is("group", "auto")) {
    size = given.integer("group");
  } else if (strided) {
    size = default_strided_size(workers);
  } else if (is_power_of_two(workers)) {
    size = default_group_size(workers);
  }
  Groups groups = butterfly(size);
  if (strided) groups.kind = Groups::Kind::strided;
  const auto limit = grace(given);
  Tier grouped{.groups = groups, .period = every(1), .trigger = first_arrived, .late = lateness(given, true)};
  grouped.merges_own_version = given.is("late_merge", "version");
  const bool code = given.is("parity", "code");
  const Tier sync = average(given, *given.get<Period>("sync"));
  if (grouped.merges_own_version && (grouped.late == Lateness::skips || limit))
    return fail(ErrorKind::invalid, "late_merge=version is the paper's; it goes with late=merge and grace=none");
  if (code && (grouped.late == Lateness::skips || limit || grouped.merges_own_version))
    return fail(ErrorKind::invalid, "parity=code goes with late=merge, late_merge=latest and grace=none");
  return Strategy{.tiers = {grouped, sync}, .code_parity = code};
}

/// AdaComm (Wang & Joshi): local SGD whose period shrinks as the loss falls (eq. 18 with 20), optionally with block
/// momentum.
Result<Strategy> adacomm(const Values& given, std::int32_t) {
  const Period period{.kind = Period::Kind::adacomm,
                      .steps = given.integer("period"),
                      .interval_s = seconds(*given.get<Duration>("interval")),
                      .gamma = given.real("gamma"),
                      .slack = given.real("slack"),
                      .loss_window = given.integer("loss_window"),
                      .reset_on_lr_change = given.is("reset_on_lr_change", "yes")};
  const double momentum = given.real("block_momentum");
  const auto kind = momentum > 0 ? Outer::Kind::block_momentum : Outer::Kind::none;
  return Strategy{.tiers = {average(period)}, .outer = {.kind = kind, .momentum = momentum}};
}

/// Local SGD under the Quadratic Synchronization Rule (Gu et al. 2024, Alg. 2).
Result<Strategy> qsr(const Values& given, std::int32_t) {
  return Strategy{
      .tiers = {average({.kind = Period::Kind::qsr, .steps = given.integer("base"), .alpha = given.real("alpha")})}};
}

/// Hier-AVG (Zhou & Cong, Alg. 1).
Result<Strategy> hier_avg(const Values& given, std::int32_t) {
  const auto k1 = given.integer("k1"), k2 = given.integer("k2");
  if (k1 > k2)
    return fail(ErrorKind::invalid, "k1=" + std::to_string(k1) + " is larger than k2=" + std::to_string(k2) +
                                        "; groups average every k1 steps, everybody every k2: k1 is at most k2");
  Tier local{.period = every(k1)};
  local.groups = {.kind = Groups::Kind::clusters, .size = static_cast<std::int32_t>(given.integer("group"))};
  return Strategy{.tiers = {local, average(every(k2))}};
}

/// Partial allreduce of gradients (Li et al., PPoPP 2020): those who are late contribute nothing, or what they have.
Result<Strategy> eager_sgd(const Values& given, std::int32_t workers) {
  const bool counts = !given.is("quorum", "none");
  if (counts && given.written("start"))
    return fail(ErrorKind::invalid, "quorum is a third way beside solo and majority; give one of them");
  if (counts && given.integer("quorum") > workers)
    return fail(ErrorKind::invalid, "quorum=" + std::to_string(given.integer("quorum")) + " is more than the " +
                                        std::to_string(workers) +
                                        " workers; quorum is from 1 to the number of workers");
  Tier tier{.payload = gradients, .late = given.is("late", "drop") ? Lateness::drops : Lateness::accumulates};
  tier.trigger = counts ? Trigger::quorum : given.is("start", "solo") ? first_arrived : Trigger::initiator;
  tier.quorum = counts ? static_cast<std::int32_t>(given.integer("quorum")) : 0;
  return Strategy{.tiers = {tier, average(every(given.integer("sync")))}};
}

/// D-PSGD (Lian et al. 2017).
Result<Strategy> d_psgd(const Values& given, std::int32_t) {
  Groups groups;
  groups.kind = given.is("graph", "ring")       ? Groups::Kind::ring
                : given.is("graph", "complete") ? Groups::Kind::complete
                                                : Groups::Kind::bipartite;
  return neighbours(groups, given.is("order", "cta") ? Order::combine_then_adapt : Order::adapt_then_combine);
}

/// AD-PSGD (Lian et al. 2018).
Result<Strategy> ad_psgd(const Values& given, std::int32_t workers) {
  const bool random = given.is("pairs", "random");
  if (!random && workers % 2 != 0)
    return fail(ErrorKind::invalid, "bipartite pairs need an even number of workers, not " + std::to_string(workers) +
                                        "; use ad-psgd(random)");
  return neighbours({.kind = Groups::Kind::pair, .random = random}, Order::adapt_then_combine);
}

/// MATCHA (Wang et al. 2019): a graph's matchings, each active with its own probability.
Result<Strategy> matcha(const Values& given, std::int32_t) {
  return neighbours({.kind = Groups::Kind::matchings, .graph = given.text("graph"), .budget = given.real("budget")},
                    Order::adapt_then_combine);
}

/// Stochastic Gradient Push (Assran et al.): directed and exact by push-sum.
Result<Strategy> sgp(const Values& given, std::int32_t) {
  Groups groups{.kind = Groups::Kind::exponential,
                .peers = static_cast<std::int32_t>(given.integer("peers")),
                .fast_hops = given.is("hops", "base")};
  if (!given.is("graph", "none") && (given.written("peers") || given.written("hops")))
    return fail(ErrorKind::invalid, "graph says who sends to whom; peers and hops are for graphs of our own");
  if (!given.is("graph", "none")) groups = {.kind = Groups::Kind::digraph, .graph = given.text("graph")};
  Strategy strategy = neighbours(groups, Order::adapt_then_combine);
  strategy.push_sum = true;
  return strategy;
}

/// SGP that sends while it computes.
Result<Strategy> osgp(const Values& given, std::int32_t) {
  Strategy strategy =
      neighbours({.kind = Groups::Kind::exponential, .peers = static_cast<std::int32_t>(given.integer("peers"))},
                 Order::combine_then_adapt);
  strategy.push_sum = true;
  strategy.overlap = static_cast<std::int32_t>(given.integer("bound"));
  return strategy;
}

/// Parameter server: rounds, or gradients as they come.
Result<Strategy> server(const Values& given, std::int32_t) {
  const bool bounded = !given.is("bounded", "none");
  if (bounded && given.written("mode"))
    return fail(ErrorKind::invalid, "bounded is a third way beside sync and async; give one of them");
  if (given.is("mode", "sync") && !bounded) {
    if (!given.is("scale", "one"))
      return fail(ErrorKind::invalid, "scale is for server(async) and server(bounded=..): a round is a mean");
    return Strategy{.tiers = {{.payload = gradients, .groups = {.kind = Groups::Kind::server}}}};
  }
  Strategy strategy = neighbours({.kind = Groups::Kind::server}, Order::adapt_then_combine);
  strategy.tiers[0].payload = gradients;
  strategy.tiers[0].trigger = first_arrived;
  if (bounded) strategy.server.bound = given.integer("bounded");
  strategy.server.scale = given.is("scale", "p")           ? Server::Scale::workers
                          : given.is("scale", "staleness") ? Server::Scale::staleness
                                                           : Server::Scale::one;
  return strategy;
}

/// Block-wise model update filtering (Chen & Huo 2016).
Result<Strategy> bmuf(const Values& given, std::int32_t workers) {
  return Strategy{.tiers = {average(every(given.integer("period")))},
                  .outer = {.kind = Outer::Kind::bmuf,
                            .momentum = 1 - 1 / static_cast<double>(workers),
                            .nesterov = given.is("momentum", "nesterov")}};
}

/// SlowMo (Wang et al. 2020).
Result<Strategy> slowmo(const Values& given, std::int32_t) {
  return Strategy{.tiers = {average(every(given.integer("period")))},
                  .outer = {.kind = Outer::Kind::slowmo, .momentum = given.real("beta"), .rate = given.real("alpha")}};
}

/// DiLoCo (Douillard et al. 2023).
Result<Strategy> diloco(const Values& given, std::int32_t) {
  return Strategy{.tiers = {average(every(given.integer("period")))},
                  .outer = {.kind = Outer::Kind::diloco, .momentum = given.real("momentum"), .rate = given.real("lr")}};
}

/// Decoupled DiLoCo (Douillard et al. 2026): a quorum and a grace that follows measured arrivals instead of everybody;
/// who is absent counts with the samples that it has done.
Result<Strategy> decoupled_diloco(const Values& given, std::int32_t workers) {
  const std::int64_t quorum = given.is("quorum", "auto") ? workers / 2 + 1 : given.integer("quorum");
  if (quorum > workers)
    return fail(ErrorKind::invalid, "quorum=" + std::to_string(quorum) + " is more than the " +
                                        std::to_string(workers) +
                                        " workers; quorum is from 1 to the number of workers");
  Tier tier = average(every(given.integer("period")));
  tier.trigger = Trigger::quorum;
  tier.quorum = static_cast<std::int32_t>(quorum);
  tier.late = Lateness::skips;
  tier.grace = grace(given);
  if (tier.grace) tier.grace->median_spreads = std::exchange(tier.grace->median_steps, 0);
  tier.weighs_by_samples = true;
  return Strategy{.tiers = {tier},
                  .outer = {.kind = Outer::Kind::diloco, .momentum = given.real("momentum"), .rate = given.real("lr")}};
}

/// Streaming DiLoCo (Douillard et al. 2025): a part of the model at a time, on its way while workers train.
Result<Strategy> streaming_diloco(const Values& given, std::int32_t) {
  const auto period = given.integer("period"), fragments = given.integer("fragments"), delay = given.integer("delay");
  if (period % fragments != 0)
    return fail(ErrorKind::invalid, "fragments=" + std::to_string(fragments) +
                                        " does not divide period=" + std::to_string(period) +
                                        "; each part has its average in every period, the same "
                                        "number of steps apart");
  if (delay >= period / fragments)
    return fail(ErrorKind::invalid, "delay=" + std::to_string(delay) +
                                        " is not below period/fragments=" + std::to_string(period / fragments) +
                                        "; a part is taken before the next one is sent");
  Tier tier = average(every(period));
  tier.fragments = static_cast<std::int32_t>(fragments);
  tier.delay = delay;
  tier.keeps = given.real("alpha");
  return Strategy{.tiers = {tier},
                  .outer = {.kind = Outer::Kind::diloco, .momentum = given.real("momentum"), .rate = given.real("lr")}};
}

/// NoLoCo (Kolehmainen et al. 2025): an outer step over random pairs, whose slow weights are pulled together.
Result<Strategy> noloco(const Values& given, std::int32_t) {
  Tier tier = average(every(given.integer("period")));
  tier.groups.kind = Groups::Kind::matched;
  return Strategy{.tiers = {tier},
                  .outer = {.kind = Outer::Kind::noloco,
                            .momentum = given.real("momentum"),
                            .rate = given.real("lr"),
                            .pull = given.real("gamma")}};
}

/// Non-blocking SGD (He & Dube) over a base algorithm: the base's tiers, started by the first worker that completes its
/// batch, while the others abandon the rest of theirs.
Result<Strategy> nonblocking(const Values& given, std::int32_t) {
  Strategy strategy = *given.get<Strategy>("base");
  const auto who = strategy.tiers.front().groups.kind;
  const bool synchronous = std::all_of(strategy.tiers.begin(), strategy.tiers.end(), [](const Tier& tier) {
    return tier.payload == gradients && tier.trigger == all_arrived && tier.late == waits;
  });
  const bool mixes = who == Groups::Kind::ring || who == Groups::Kind::complete || who == Groups::Kind::bipartite ||
                     who == Groups::Kind::matchings || who == Groups::Kind::clusters;
  if ((!synchronous && !mixes) || strategy.brings_batches())
    return fail(ErrorKind::invalid, "its base '" + strategy.name +
                                        "' is none that averages at every iteration; use allreduce, d-psgd, matcha, "
                                        "hier-avg or server(sync)");
  const bool drops = given.is("inflight", "drop");
  for (Tier& tier : strategy.tiers) {
    tier.payload = gradients;
    tier.trigger = drops ? first_arrived : all_arrived;
    tier.late = drops ? abandons : Lateness::finishes;
  }
  strategy.batches = static_cast<std::int32_t>(given.integer("batches"));
  strategy.normalise = given.is("normalise", "a")   ? Strategy::Normalise::a
                       : given.is("normalise", "d") ? Strategy::Normalise::d
                                                    : Strategy::Normalise::b;
  strategy.rotate_shards = true;
  return strategy;
}

}  // namespace paceline::algorithms::build
