#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"
#include "scheduler/asynchronous/server_engine.h"
#include "scheduler/mixing/mix_plan.h"
#include "scheduler/rounds/round_plan.h"

namespace paceline::algorithms {

using scheduler::Grace;
using scheduler::Lateness;
using scheduler::Payload;
using scheduler::Trigger;

/// Who averages together.
struct Groups {
  enum class Kind {
    // Groups that share no worker, or everybody; the round engine (scheduler/rounds) fires them.
    all,
    butterfly,
    strided,
    // Neighbourhoods; the mix engine (scheduler/mixing) does each worker's mixing when its neighbours are there.
    clusters,
    ring,
    complete,
    bipartite,
    exponential,
    digraph,
    matchings,
    matched,  ///< Pairs of a perfect matching that is drawn anew for every exchange.
    // Whoever is there; one meets one.
    server,
    pair,
  };
  Kind kind = Kind::all;
  std::int32_t size = 0;   ///< butterfly, strided, clusters: members; 0 = sqrt(P), 2^ceil(log2(P)/2).
  std::int32_t peers = 1;  ///< exponential: out-neighbours.
  bool fast_hops = false;  ///< exponential: hops j (peers+1)^k instead of powers of two.
  bool random = true;      ///< pair: anybody with anybody, else odd ranks with even ones.
  std::string graph = {};  ///< digraph, matchings: a graph's name or file.
  double budget = 1;       ///< matchings: share that is active on average.
};

/// When a round is due.
struct Period {
  enum class Kind { every, adacomm, qsr, whole_run };
  Kind kind = Kind::every;
  std::int64_t steps = 1;  ///< tau, tau_0 of AdaComm, H_base of QSR.
  double interval_s = 60;  ///< AdaComm: T_0.
  double gamma = 0.5;
  double slack = 0;
  std::int64_t loss_window = 100;
  bool reset_on_lr_change = false;
  double alpha = 0;  ///< QSR.

  /// Averages change it (algorithms/period.h).
  bool adapts() const { return kind == Kind::adacomm || kind == Kind::qsr; }
};

/// One row of answers about one kind of averaging (docs/ARCHITECTURE.md, "An averaging is a task with a trigger").
struct Tier {
  Payload payload = Payload::models;
  Groups groups = {};
  Period period = {};
  Trigger trigger = Trigger::all_arrived;
  Lateness late = Lateness::waits;
  std::optional<Grace> grace = {};
  std::int32_t quorum = 0;          ///< Trigger quorum: how many.
  bool merges_own_version = false;  ///< A late worker merges with the version that it missed, not with the newest.
  /// A contribution weighs as many samples as its worker has computed since it last took an average; nobody's counts
  /// twice.
  bool weighs_by_samples = false;
  /// > 0: the model's numbers in so many contiguous parts, one of them at each average, in turn; `period` is that of
  /// each part. What was sent after iteration v is taken after iteration v + delay, and the local numbers keep the
  /// share `keeps` then.
  std::int32_t fragments = 0;
  std::int64_t delay = 0;
  double keeps = 0;
};

/// Where the local step comes in a mixing with neighbours.
enum class Order {
  adapt_then_combine,  ///< x' = W (x + step): everybody's step is mixed.
  combine_then_adapt,  ///< x' = W x + step: models of the step's start are mixed while it is computed.
};

/// What follows the average of all (algorithms/outer.h).
struct Outer {
  enum class Kind { none, block_momentum, bmuf, slowmo, diloco, noloco };
  Kind kind = Kind::none;
  double momentum = 0;    ///< beta, eta_b, mu.
  double rate = 1;        ///< zeta, alpha, outer learning rate.
  double pull = 0;        ///< noloco: gamma.
  bool nesterov = false;  ///< bmuf: the next block starts where momentum would carry it.
  /// The workers' own momentum is cleared when a block begins.
  bool clears_momentum() const { return kind == Kind::block_momentum || kind == Kind::bmuf; }
};

/// Asynchronous parameter server: what a push weighs.
struct Server {
  using Scale = scheduler::PushScale;
  Scale scale = Scale::one;
  std::optional<std::int64_t> bound = {};  ///< Iterations that a worker may be ahead of the slowest.
};

/// A strategy is an ordered list of tiers; where two are due at the same iteration the last one holds.
struct Strategy {
  std::string name = {};  ///< As the user wrote it.
  std::vector<Tier> tiers = {};
  std::int32_t batches = 1;  ///< nonblocking: mini-batches (bodies) an update; others: 1 unless accumulate is set.
  enum class Normalise { a, b, d } normalise = Normalise::b;  ///< nonblocking only (algorithms 11).
  bool rotate_shards = false;                                 ///< Worker i reads shard (i + epoch) mod P.
  std::int64_t warmup = 0;  ///< So many iterations gradients are averaged, then the tiers begin to count.
  Outer outer = {};         ///< After every average of all.
  Order order = Order::adapt_then_combine;
  bool push_sum = false;     ///< Mixings carry weights that make up for shares that do not sum to 1.
  std::int32_t overlap = 0;  ///< Mixings may arrive so many steps after they were sent.
  Server server = {};
  /// wagma as its authors' code: group averages take models of the step's start, and always count one's own again.
  bool code_parity = false;
  /// How long the others wait for a worker that lives; then it leaves. Any strategy's: wagma(sync=20,patience=30s).
  std::optional<Duration> patience = {};

  /// It says itself how many mini-batches an update has (those that are late are abandoned); `accumulate` is for
  /// others.
  bool brings_batches() const {
    return !tiers.empty() && (tiers.back().late == Lateness::abandons || tiers.back().late == Lateness::finishes);
  }
};

/// Which core decides when something is averaged.
enum class Coordination {
  rounds,     ///< Versions that all agents execute in order (scheduler/rounds).
  mixing,     ///< Every worker waits for its own neighbours (scheduler/mixing).
  exchanges,  ///< The same, at some iterations only, and what was sent may be taken later.
  server,     ///< Gradients go to a server one by one (scheduler/asynchronous).
  pairs,      ///< Two average whenever one of them has done a step.
};
Coordination coordination(const Strategy& strategy);

/// Whether workers are at versions of their own, without rounds of all. Alone, one has nobody to be apart from; but the
/// outer step of an exchange is one of its own, too.
bool has_own_pace(const Strategy& strategy, std::int32_t workers);

/// A worker whose process has ended may have another one that comes back into the job: not under exchanges, nor where
/// mixings overlap with steps, nor where batches are mixed.
bool workers_come_back(const Strategy& strategy, std::int32_t workers);

/// Steps are of batches that the first worker to finish ends, then models of neighbours are mixed.
bool mixes_batches(const Strategy& strategy);

/// Whether the optimisers' state can be kept, reset or averaged (`state`; empty: as the strategy has it) at this
/// strategy's averagings. `invalid`: it is none of these words, or only gradients are averaged, or what is to be reset
/// belongs to other parts of the model, too, or models are not averaged alone but with a step added, which can make a
/// second moment negative.
Result<void> check_optimizer_state(const Strategy& strategy, std::string_view state);

/// Whether learning rates can follow how many workers take part (`scaling`: none, linear, sqrt). `invalid`: there are
/// no rounds of all, from which each worker learns that.
Result<void> check_lr_scaling(const Strategy& strategy, std::int32_t workers, std::string_view scaling);

/// Parses "wagma(group=2,sync=10,late=skip,grace=2x)" and checks every parameter against P. Every strategy takes
/// `patience`, too.
/// `invalid` names the strategy or parameter, its value and its range, and what the algorithm needs; unknown names list
/// the known ones.
Result<Strategy> parse_strategy(std::string_view text, std::int32_t workers);

/// The same text with another value of a parameter, or with one more: "wagma(sync=20)" of "wagma(sync=10)". `invalid`:
/// one of them cannot be read. Whether the strategy takes it parse_strategy() says.
Result<std::string> with_parameter(std::string_view strategy, std::string_view name, std::string_view value);

/// The same strategy with the names of its graph files made absolute: agents have working directories of their own.
std::string with_absolute_paths(std::string_view strategy);

/// One line a strategy for `--help`: spelling, defaults, one sentence.
struct StrategyHelp {
  std::string spelling;
  std::string sentence;
};
std::vector<StrategyHelp> strategy_help();

/// Rows of the mixing matrices of a strategy of neighbourhoods, and of nonblocking's base if it has some (null: it has
/// none). `seed` draws matchings. `invalid`: a graph cannot be read or does not fit the number of workers.
Result<std::unique_ptr<scheduler::MixPlan>> make_mix_plan(const Strategy& strategy, std::int32_t workers,
                                                          std::uint64_t seed);

/// The same over these workers, by rank, as if they were all: who is not among them has no row. nullptr: the strategy
/// has no such graph of so many.
std::shared_ptr<const scheduler::MixPlan> mix_plan_of(const Strategy& strategy, const std::vector<Rank>& members,
                                                      std::uint64_t seed);

/// The pure plan that the round engine asks. `total` = T: version T-1 is always a sync.
std::unique_ptr<scheduler::RoundPlan> make_plan(const Strategy& strategy, std::int32_t workers, std::int64_t total);

}  // namespace paceline::algorithms
