#include "tests/sim/random_jobs.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <map>
#include <sstream>

#include "algorithms/strategy.h"
#include "algorithms/topology/graph.h"
#include "algorithms/topology/matcha.h"
#include "algorithms/topology/mixing.h"
#include "algorithms/topology/pairs.h"
#include "runtime/base/splitmix.h"

namespace paceline::sim {
namespace {

using Kind = reference::Strategy::Kind;

constexpr int kWorkersMax = 33;

class Dice {
 public:
  explicit Dice(unsigned seed) : generator_(seed) {}
  int operator()(int from, int to) { return std::uniform_int_distribution<int>(from, to)(generator_); }
  bool coin() { return (*this)(0, 1) != 0; }
  /// Mostly few: what goes wrong shows with few, and they are fast.
  int workers(int least = 1) { return (*this)(0, 5) != 0 ? (*this)(least, 7) : (*this)(least, kWorkersMax); }
  int power_of_two() { return 1 << ((*this)(0, 5) != 0 ? (*this)(0, 3) : (*this)(0, 5)); }
  int even() { return 2 * ((*this)(0, 5) != 0 ? (*this)(1, 3) : (*this)(1, kWorkersMax / 2)); }
  int divisor_of(int n) {
    while (true) {
      if (const int d = (*this)(1, n); n % d == 0) return d;
    }
  }

 private:
  std::mt19937 generator_;
};

/// What a maker fills in.
struct Draft {
  Dice& dice;
  reference::Strategy& strategy;
  int steps;
  std::uint64_t seed;
  int workers = 0;
  bool one_start = false;    ///< All share one model.
  bool small_steps = false;  ///< Where a worker's step may count several times over, so that models stay bounded.
  std::ostringstream text = {};
};

void late(Draft& d) {
  if (d.dice.coin()) {
    d.strategy.skip = true;
    d.text << ",late=skip";
  }
  const int grace = d.dice(0, 3);
  if (grace == 1) {
    d.strategy.grace_s = d.dice(1, 4);
    d.text << ",grace=" << d.strategy.grace_s << "s";
  } else if (grace == 2) {
    d.strategy.grace_factor = 0.5 * d.dice(1, 4);
    d.text << ",grace=" << d.strategy.grace_factor << "x";
  }
}

void local(Draft& d, const char* name) {
  d.strategy.kind = Kind::local_sgd;
  d.workers = d.dice.workers();
  d.strategy.period = d.dice(1, 5);
  d.text << name << "(period=" << d.strategy.period;
  late(d);
  d.text << ")";
}

void wagma(Draft& d, bool strided) {
  d.strategy.kind = Kind::wagma;
  d.workers = strided ? d.dice.workers() : d.dice.power_of_two();
  d.strategy.group = strided ? d.dice.divisor_of(d.workers)
                             : 1 << d.dice(0, static_cast<int>(std::bit_width(static_cast<unsigned>(d.workers))) - 1);
  d.strategy.period = d.dice(1, 6);
  d.strategy.strided = strided;
  d.text << "wagma(group=" << d.strategy.group << ",sync=" << d.strategy.period << (strided ? ",grouping=strided" : "");
}

/// Groups at every step or none, and averages of all at several periods, each with its own answer for the late.
void tiers(Draft& d) {
  reference::Strategy& s = d.strategy;
  s.kind = Kind::tiers;
  const bool strided = d.dice.coin(), all_wait = d.dice(0, 3) == 0;
  d.workers = strided ? d.dice.workers() : d.dice.power_of_two();
  const auto average = [&](const std::string& name, int period, bool sync_of_groups) {
    reference::Strategy answers;
    Draft part{.dice = d.dice, .strategy = answers, .steps = d.steps, .seed = d.seed};
    if (!all_wait) late(part);
    if (sync_of_groups) s.tiers.back().skip = answers.skip;
    s.tiers.push_back(
        {.every = period, .skip = answers.skip, .grace_s = answers.grace_s, .grace_factor = answers.grace_factor});
    s.grace_factor = std::max(s.grace_factor, answers.grace_factor);
    s.period = period;
    d.text << name << period << part.text.str() << ")";
  };
  d.text << "tiers(";
  int period = d.dice(2, 12);
  if (d.dice.coin()) {
    const int size = strided ? d.dice.divisor_of(d.workers)
                             : 1 << d.dice(0, static_cast<int>(std::bit_width(static_cast<unsigned>(d.workers))) - 1);
    s.late_version = all_wait && d.dice.coin();
    d.text << "wagma(group=" << size << (strided ? ",grouping=strided" : "")
           << (s.late_version ? ",late_merge=version" : "");
    s.tiers.push_back({.group = size, .strided = strided});
    average(",sync=", period, true);
  } else {
    average("local-sgd(period=", period, false);
  }
  for (int more = d.dice(1, 2); more > 0; --more) {
    const int before = period;
    // What is due whenever the one before it is would leave that one nothing.
    while (std::any_of(s.tiers.begin(), s.tiers.end(),
                       [&](const auto& t) { return t.group == 0 && t.every % period == 0; }))
      period = d.dice(2, 2 * before + 2);
    d.text << ",";
    average(d.dice.coin() ? "local-sgd(period=" : "k-avg(period=", period, false);
  }
  d.text << ")";
}

void nonblocking(Draft& d, const std::string& base) {
  d.strategy.batches = d.dice(1, 5);
  d.strategy.normalise = "abd"[d.dice(0, 2)];
  d.strategy.wait = d.dice.coin();
  d.text << "nonblocking(" << base << ",batches=" << d.strategy.batches << ",normalise=" << d.strategy.normalise
         << (d.strategy.wait ? ",inflight=wait" : "") << ")";
  d.strategy.base = d.strategy.kind;
  d.strategy.kind = Kind::nonblocking;
}

std::string hier_avg(Draft& d) {
  reference::Strategy& s = d.strategy;
  s.kind = Kind::hier_avg;
  d.workers = d.dice.workers();
  s.group = d.dice.divisor_of(d.workers);
  s.k1 = d.dice(1, 4);
  s.k2 = d.dice(s.k1, 9);
  std::ostringstream text;
  text << "hier-avg(k1=" << s.k1 << ",k2=" << s.k2 << ",group=" << s.group << ")";
  return text.str();
}

std::string d_psgd(Draft& d) {
  using Graph = reference::Strategy::Graph;
  d.strategy.kind = Kind::d_psgd;
  const int graph = d.dice(0, 2);
  d.strategy.graph = graph == 0 ? Graph::ring : graph == 1 ? Graph::bipartite : Graph::complete;
  d.workers = graph == 1 ? d.dice.even() : d.dice.workers();
  d.strategy.atc = d.dice.coin();
  const char* const names[] = {"ring", "bipartite", "complete"};
  return std::string("d-psgd(") + names[graph] + ",order=" + (d.strategy.atc ? "atc" : "cta") + ")";
}

/// The reference is told what is active; who draws it is tested beside the drawing.
std::string matcha(Draft& d) {
  d.strategy.kind = Kind::matcha;
  const bool eight = d.dice.coin();
  d.workers = eight ? 8 : d.dice(3, 9);
  const int tenths = d.dice(3, 10);
  const std::string graph = eight ? "8-node" : "ring";
  const auto made = algorithms::make_matcha(*algorithms::named_graph(graph, d.workers), tenths / 10.0);
  if (!made) return "matcha cannot be made: " + made.error().text;
  for (const auto& matching : made->matchings) {
    d.strategy.matchings.emplace_back();
    for (const auto& edge : matching) d.strategy.matchings.back().emplace_back(edge.a, edge.b);
  }
  d.strategy.alpha = made->alpha;
  for (int t = 0; t < d.steps; ++t) {
    d.strategy.active.emplace_back();
    for (const auto j : algorithms::active_matchings(*made, d.seed, Version{t}))
      d.strategy.active.back().push_back(static_cast<int>(j));
  }
  std::ostringstream text;
  text << "matcha(" << graph << ",budget=" << tenths / 10.0 << ")";
  return text.str();
}

void eager(Draft& d) {
  using Trigger = reference::Strategy::Trigger;
  d.strategy.kind = Kind::eager_sgd;
  d.workers = d.dice.workers();
  const int trigger = d.dice(0, 2);
  d.strategy.trigger = trigger == 0 ? Trigger::solo : trigger == 1 ? Trigger::majority : Trigger::quorum;
  d.strategy.drop = d.dice.coin();
  d.strategy.sync = d.dice(2, 6);
  d.text << "eager-sgd(";
  if (trigger == 2) {
    d.strategy.quorum = d.dice(1, d.workers);
    d.text << "quorum=" << d.strategy.quorum;
  } else {
    d.text << (trigger == 0 ? "solo" : "majority");
  }
  for (int t = 0; t < d.steps; ++t)
    d.strategy.initiators.push_back(static_cast<int>(draw_bits(d.seed, t, 0) % static_cast<unsigned>(d.workers)));
  d.text << (d.strategy.drop ? ",late=drop" : "") << ",sync=" << d.strategy.sync << ")";
}

void ad_psgd(Draft& d) {
  d.strategy.kind = Kind::ad_psgd;
  const bool random = d.dice.coin();
  d.workers = random ? d.dice.workers(2) : d.dice.even();
  const auto pairing = random ? algorithms::Pairing::random : algorithms::Pairing::bipartite;
  for (int t = 0; t < d.steps; ++t) {
    d.strategy.partners.emplace_back();
    for (int i = 0; i < d.workers; ++i) {
      const auto other = algorithms::partner(d.seed, d.workers, Rank{i}, Version{t}, pairing);
      d.strategy.partners.back().push_back(other ? other->value : i);
    }
  }
  d.text << "ad-psgd(" << (random ? "random" : "bipartite") << ")";
}

void server(Draft& d) {
  using Scale = reference::Strategy::Scale;
  d.strategy.kind = Kind::server;
  d.workers = d.dice.workers();
  d.one_start = true;
  const int mode = d.dice(0, 2);
  d.strategy.server = static_cast<reference::Strategy::Server>(mode);
  if (mode == 0) {
    d.text << "server(sync)";
    return;
  }
  const int scale = d.dice(0, 2);
  d.strategy.scale = static_cast<Scale>(scale);
  const char* const scales[] = {"one", "p", "staleness"};
  d.strategy.bound = d.dice(0, 4);
  if (mode == 1) {
    d.text << "server(async";
  } else {
    d.text << "server(bounded=" << d.strategy.bound;
  }
  d.text << ",scale=" << scales[scale] << ")";
}

const std::map<std::string, std::function<void(Draft&)>>& makers() {
  static const std::map<std::string, std::function<void(Draft&)>> table{
      {"allreduce",
       [](Draft& d) {
         d.strategy.kind = Kind::allreduce;
         d.workers = d.dice.workers();
         d.one_start = true;
         d.text << "allreduce";
       }},
      {"local_sgd", [](Draft& d) { local(d, "local-sgd"); }},
      {"k_avg", [](Draft& d) { local(d, "k-avg"); }},
      {"one_shot",
       [](Draft& d) {
         d.strategy.kind = Kind::local_sgd;
         d.workers = d.dice.workers();
         d.strategy.period = d.steps;
         d.text << "one-shot";
       }},
      {"post_local",
       [](Draft& d) {
         local(d, "post-local");
         d.strategy.kind = Kind::post_local;
         d.strategy.warmup = d.dice(1, 8);
         std::string text = d.text.str();
         text.back() = ',';
         d.text.str(text + "warmup=" + std::to_string(d.strategy.warmup) + ")");
         d.one_start = true;
       }},
      {"wagma",
       [](Draft& d) {
         wagma(d, false);
         late(d);
         d.text << ")";
       }},
      {"wagma_strided",
       [](Draft& d) {
         wagma(d, true);
         late(d);
         d.text << ")";
       }},
      {"wagma_variants",
       [](Draft& d) {
         wagma(d, d.dice.coin());
         if (d.dice.coin()) {
           d.strategy.code = true;
           d.text << ",parity=code)";
         } else {
           d.strategy.late_version = true;
           d.text << ",late_merge=version)";
         }
       }},
      {"wagma_adaptive",
       [](Draft& d) {
         using Adapts = reference::Strategy::Adapts;
         reference::Strategy& s = d.strategy;
         s.kind = Kind::wagma;
         s.strided = true;
         d.workers = d.dice.workers();
         s.group = d.dice.divisor_of(d.workers);
         s.period = d.dice(1, 6);
         d.text << "wagma(grouping=strided,group=" << s.group << ",sync=";
         if (d.dice.coin()) {
           s.sync_adapts = Adapts::qsr;
           s.qsr_alpha = 0.125 * d.dice(1, 6);
           d.text << "qsr(base=" << s.period << ",alpha=" << s.qsr_alpha << ")";
         } else {
           s.sync_adapts = Adapts::adacomm;
           s.interval_s = d.dice(2, 20);
           s.loss_window = d.dice(1, 5);
           s.gamma = 0.25 * d.dice(1, 3);
           d.text << "adacomm(period=" << s.period << ",interval=" << s.interval_s << "s,loss_window=" << s.loss_window
                  << ",gamma=" << s.gamma << ")";
         }
         late(d);
         d.text << ")";
       }},
      {"adacomm",
       [](Draft& d) {
         reference::Strategy& s = d.strategy;
         s.kind = Kind::adacomm;
         d.workers = d.dice.workers();
         s.period = d.dice(1, 6);
         s.interval_s = d.dice(2, 20);
         s.loss_window = d.dice(1, 5);
         s.block_momentum = d.dice(0, 1) * 0.25;
         s.gamma = 0.25 * d.dice(1, 3);
         d.text << "adacomm(period=" << s.period << ",interval=" << s.interval_s << "s,loss_window=" << s.loss_window
                << ",block_momentum=" << s.block_momentum << ",gamma=" << s.gamma << ")";
       }},
      {"qsr",
       [](Draft& d) {
         reference::Strategy& s = d.strategy;
         s.kind = Kind::qsr;
         d.workers = d.dice.workers();
         s.period = d.dice(1, 4);
         s.qsr_alpha = 0.125 * d.dice(1, 6);
         d.text << "qsr(base=" << s.period << ",alpha=" << s.qsr_alpha << ")";
       }},
      {"hier_avg", [](Draft& d) { d.text << hier_avg(d); }},
      {"d_psgd", [](Draft& d) { d.text << d_psgd(d); }},
      {"matcha", [](Draft& d) { d.text << matcha(d); }},
      {"sgp",
       [](Draft& d) {
         reference::Strategy& s = d.strategy;
         s.kind = Kind::sgp;
         d.workers = d.dice.workers();
         s.peers = d.dice(1, 3);
         s.hops = d.dice.coin() ? reference::Strategy::Hops::base : reference::Strategy::Hops::pow2;
         d.text << "sgp(peers=" << s.peers << ",hops=" << (s.hops == reference::Strategy::Hops::base ? "base" : "pow2")
                << ")";
       }},
      {"osgp",
       [](Draft& d) {
         reference::Strategy& s = d.strategy;
         s.kind = Kind::osgp;
         d.small_steps = true;
         d.workers = d.dice.workers();
         s.peers = d.dice(1, 2);
         s.bound = d.dice(1, 3);
         d.text << "osgp(peers=" << s.peers << ",bound=" << s.bound << ")";
       }},
      {"eager_sgd", eager},
      {"server", server},
      {"ad_psgd", ad_psgd},
      {"outer",
       [](Draft& d) {
         reference::Strategy& s = d.strategy;
         d.workers = d.dice.workers();
         s.period = d.dice(1, 5);
         switch (d.dice(0, 2)) {
           case 0:
             s.kind = Kind::bmuf;
             s.nesterov_blocks = d.dice.coin();
             d.text << "bmuf(period=" << s.period << (s.nesterov_blocks ? ",nesterov)" : ",classic)");
             break;
           case 1:
             s.kind = Kind::slowmo;
             s.outer_momentum = 0.25 * d.dice(0, 3);
             s.outer_lr = 0.5 * d.dice(1, 3);
             d.text << "slowmo(period=" << s.period << ",beta=" << s.outer_momentum << ",alpha=" << s.outer_lr << ")";
             break;
           default:
             s.kind = Kind::diloco;
             s.outer_momentum = 0.25 * d.dice(0, 3);
             s.outer_lr = 0.25 * d.dice(1, 4);
             d.text << "diloco(period=" << s.period << ",lr=" << s.outer_lr << ",momentum=" << s.outer_momentum << ")";
         }
       }},
      {"decoupled_diloco",
       [](Draft& d) {
         reference::Strategy& s = d.strategy;
         s.kind = Kind::decoupled_diloco;
         d.workers = d.dice.workers();
         s.period = d.dice(1, 6);
         s.outer_momentum = 0.25 * d.dice(0, 3);
         s.outer_lr = 0.25 * d.dice(1, 4);
         s.quorum = d.dice(1, d.workers);
         d.text << "decoupled-diloco(period=" << s.period << ",lr=" << s.outer_lr << ",momentum=" << s.outer_momentum
                << ",quorum=" << s.quorum;
         const int grace = d.dice(0, 3);
         if (grace == 0) {
           d.text << ",grace=none)";
         } else if (grace == 1) {
           s.grace_s = d.dice(1, 4);
           d.text << ",grace=" << s.grace_s << "s)";
         } else {
           s.grace_factor = 0.5 * d.dice(1, 6);
           d.text << ",grace=" << s.grace_factor << "x)";
         }
       }},
      {"streaming_diloco",
       [](Draft& d) {
         reference::Strategy& s = d.strategy;
         s.kind = Kind::streaming_diloco;
         d.workers = d.dice.workers();
         s.fragments = d.dice(1, 3);
         const int every = d.dice(1, 4);
         s.period = s.fragments * every;
         s.delay = d.dice(0, every - 1);
         s.keeps = 0.25 * d.dice(0, 4);
         s.outer_momentum = 0.25 * d.dice(0, 3);
         s.outer_lr = 0.25 * d.dice(1, 4);
         d.text << "streaming-diloco(period=" << s.period << ",fragments=" << s.fragments << ",delay=" << s.delay
                << ",lr=" << s.outer_lr << ",momentum=" << s.outer_momentum << ",alpha=" << s.keeps << ")";
       }},
      {"noloco",
       [](Draft& d) {
         reference::Strategy& s = d.strategy;
         s.kind = Kind::noloco;
         d.workers = d.dice.workers();
         s.period = d.dice(1, 5);
         s.outer_momentum = 0.25 * d.dice(0, 3);
         s.outer_lr = 0.25 * d.dice(1, 4);
         s.pull = 0.25 * d.dice(0, 4);
         for (int r = 0; r < d.steps; ++r) {
           s.partners.emplace_back();
           for (int i = 0; i < d.workers; ++i)
             s.partners.back().push_back(algorithms::matched_with(d.seed, d.workers, Rank{i}, Version{r}).value);
         }
         d.text << "noloco(period=" << s.period << ",lr=" << s.outer_lr << ",momentum=" << s.outer_momentum
                << ",gamma=" << s.pull << ")";
       }},
      {"nonblocking",
       [](Draft& d) {
         const bool server = d.dice.coin();
         d.strategy.kind = server ? Kind::server : Kind::allreduce;
         d.workers = d.dice.workers();
         d.one_start = true;
         nonblocking(d, server ? "server" : "allreduce");
       }},
      {"tiers", tiers},
      {"nonblocking_neighbours",
       [](Draft& d) {
         const int which = d.dice(0, 2);
         const std::string base = which == 0 ? d_psgd(d) : which == 1 ? matcha(d) : hier_avg(d);
         nonblocking(d, base);
       }},
  };
  return table;
}

}  // namespace

std::vector<std::string> random_strategies() {
  std::vector<std::string> names;
  for (const auto& [name, make] : makers()) names.push_back(name);
  return names;
}

Pair random_pair(const std::string& strategy, unsigned seed) {
  Dice dice(seed);
  Pair p;
  p.job.steps = p.expected.steps = dice(1, 24);
  p.job.seed = seed;
  Draft d{.dice = dice, .strategy = p.expected.strategy, .steps = static_cast<int>(p.job.steps), .seed = seed};
  makers().at(strategy)(d);
  p.job.strategy = d.text.str();

  const int dimensions = dice(1, 2);
  const auto vector = [&] {
    std::vector<double> v;
    for (int k = 0; k < dimensions; ++k) v.push_back(dice(0, 12));
    return v;
  };
  const bool one_start = d.one_start || dice.coin();
  const auto start = vector();
  for (int i = 0; i < d.workers; ++i) {
    std::vector<double> a;
    for (int k = 0; k < dimensions; ++k) a.push_back(0.5 * dice(1, 4));
    const auto c = vector();
    p.job.workers.push_back({a, c});
    p.expected.workers.push_back({a, c});
    p.job.start.push_back(one_start ? start : vector());
  }
  p.expected.start = p.job.start;
  p.job.lr = p.expected.lr = (d.small_steps ? 0.015625 : 0.125) * dice(1, 3);
  p.job.momentum = p.expected.momentum = dice(0, 1) * 0.5;
  p.job.nesterov = p.expected.nesterov = p.job.momentum > 0 && dice.coin();
  const int rows = dice(1, 6);
  const bool ties = dice(0, 2) != 0;
  for (int r = 0; r < rows; ++r) {
    p.job.compute_s.emplace_back();
    for (int i = 0; i < d.workers; ++i) p.job.compute_s.back().push_back(ties ? dice(1, 4) : 1e-3 * dice(500, 4000));
  }
  p.expected.compute_s = p.job.compute_s;
  return p;
}

std::vector<std::string> strategies_of_views() {
  return {"allreduce", "local_sgd", "k_avg", "post_local", "adacomm", "qsr", "outer", "nonblocking", "server"};
}

namespace {

/// The first average of all after step `from` that is not the last step's, of those that are `there`; -1: none.
int average_of_all(const reference::Job& job, const std::vector<int>& there, int from) {
  int found = -1;
  for (const auto& row : reference::run(job)) {
    const bool of_all = row.group == there;
    if (of_all && row.step >= from && row.step < job.steps - 1 && (found < 0 || row.step < found)) found = row.step;
  }
  return found;
}

}  // namespace

bool add_views(Pair& pair, unsigned seed) {
  const auto& strategy = pair.expected.strategy;
  const bool own_pace = strategy.kind == Kind::server && strategy.server != reference::Strategy::Server::sync;
  const auto workers = static_cast<int>(pair.job.workers.size());
  if (workers < 2 || own_pace || strategy.skip || strategy.grace_s > 0 || strategy.grace_factor > 0) return false;
  Dice dice(seed + 1000);
  std::vector<int> there, away;
  for (int i = 0; i < workers; ++i) there.push_back(i);
  const int changes = dice(1, 5);
  for (int k = 0, after = -1; k < changes; ++k) {
    if (k > 0 || !dice.coin()) after = there.size() < 2 ? -1 : average_of_all(pair.expected, there, after + dice(1, 4));
    if (after < 0 && (k > 0 || pair.job.steps < 2)) break;
    reference::Job::View view{.after = after};
    const auto stays = there[static_cast<std::size_t>(dice(0, static_cast<int>(there.size()) - 1))];
    for (const int i : std::vector(there))
      if (i != stays && dice(0, 2) == 0) view.leave.push_back(i);
    if (after >= 0)
      for (const int i : away)
        if (dice.coin()) view.join.push_back(i);
    for (const int i : view.leave) std::erase(there, i);
    for (const int i : view.join) std::erase(away, i);
    there.insert(there.end(), view.join.begin(), view.join.end());
    away.insert(away.end(), view.leave.begin(), view.leave.end());
    std::sort(there.begin(), there.end());
    if (view.leave.empty() && view.join.empty()) continue;
    simulate::World::View same{.after = Version{after}};
    for (const int i : view.leave) same.leave.emplace_back(i);
    for (const int i : view.join) same.join.emplace_back(i);
    pair.job.views.push_back(std::move(same));
    pair.expected.views.push_back(std::move(view));
  }
  return !pair.job.views.empty();
}

std::string describe(const simulate::Job& job) {
  std::ostringstream s;
  s << job.strategy << " P=" << job.workers.size() << " T=" << job.steps << " mu=" << job.momentum << " compute";
  for (const auto& row : job.compute_s) {
    s << " [";
    for (double c : row) s << c << ' ';
    s << ']';
  }
  for (const auto& [after, leave, join] : job.views) {
    s << " after " << after.value;
    for (const Rank rank : leave) s << " -" << rank.value;
    for (const Rank rank : join) s << " +" << rank.value;
  }
  return s.str();
}

}  // namespace paceline::sim
