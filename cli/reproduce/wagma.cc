#include <algorithm>
#include <cmath>
#include <tuple>

#include "algorithms/simulate/scenario.h"
#include "cli/reproduce/lab.h"
#include "scheduler/rounds/activation_tree.h"

namespace paceline::cli::reproduce {
namespace {

using simulate::Job;

double one(simulate::Random&) { return 1; }

constexpr double kCompute = .64;  ///< A step of ResNet-50 with a batch of 128 on a P100; an estimate.
constexpr double kDelay = .32;

std::string wagma(int group, int sync) { return format("wagma(group=%d,sync=%d)", group, sync); }

/// Fig. 4's cluster: two random workers are late at each step.
Job delayed(const Lab& lab, const std::string& strategy, int workers, double compute, std::uint64_t seed) {
  const simulate::Scenario scenario{.workers = workers,
                                    .steps = lab.steps(300),
                                    .compute = simulate::Constant{compute},
                                    .straggle = {.worker = {}, .count = 2, .delay_s = kDelay},
                                    .seed = seed};
  return simulate::scenario_job(scenario, nothing(workers), strategy, false);
}

Spread delayed_step(const Lab& lab, const std::string& strategy, int workers = 64, double compute = kCompute) {
  return lab.over_seeds([&](std::uint64_t seed) {
    const Job job = delayed(lab, strategy, workers, compute, seed);
    return step_s(job, lab.run(job));
  });
}

/// By seed.
Spread over(const Spread& a, const Spread& b) {
  Spread ratio;
  for (std::size_t k = 0; k < a.values.size(); ++k) ratio.values.push_back(a.values[k] / b.values[k]);
  return ratio;
}

void claim_protocol(Study& study, const Lab& lab) {
  std::string edges;
  for (const int self : {1, 0, 2, 3}) {
    for (const NodeId child : scheduler::activation_children(NodeId{1}, NodeId{self}, 4))
      edges += format("%s%d-%d", edges.empty() ? "" : ", ", self, child.value);
  }
  study.claims.push_back({"Fig. 1: worker 1 activates the other three of four", Method::closed_form, "1-0, 1-3, 0-2",
                          edges, edges == "1-0, 1-3, 0-2", "the tree that runs use"});
  const auto steps_to_mean = [&](const std::string& strategy) {
    for (int steps = 1; steps <= 12; ++steps) {
      Job job = job_of(nothing(64), strategy, steps, 1, one);
      job.start.clear();
      for (int i = 0; i < 64; ++i) job.start.push_back({static_cast<double>(i)});
      if (consensus(last_models(job, lab.run(job))) < 1e-18) return steps;
    }
    return 0;
  };
  const int groups = steps_to_mean(wagma(8, 1000)), gossip = steps_to_mean("sgp");
  study.claims.push_back({"Section V-B: an update reaches all 64 in log8 64 steps, by gossip in at least log2 64",
                          Method::simulation, "2, 6", format("%d, SGP %d", groups, gossip), groups == 2 && gossip == 6,
                          "mixing only: steps until all have the mean"});
}

void claim_throughput(Study& study, const Lab& lab) {
  const Spread ours = delayed_step(lab, wagma(8, 10));
  struct Rival {
    const char *name, *strategy, *paper;
    double least;
    const char* why;
  };
  for (const Rival& rival :
       {Rival{"allreduce", "allreduce", "1.26", 1.2, "all wait for the late at each step"},
        Rival{"local SGD (period 1)", "local-sgd(period=1)", "1.25", 1.2, "as allreduce"},
        Rival{"D-PSGD", "d-psgd(ring,order=atc)", "1.23", 1.15,
              "delays travel along the ring only; nor does the cost of messages explain it: two models a step, WAGMA's "
              "group exchanges three"},
        Rival{"SGP with two peers", "sgp(peers=2)", "1.25", 1.15,
              "as D-PSGD: each waits for few others, and sends two models a step"},
        Rival{
            "eager-SGD (majority)", "eager-sgd(majority,sync=10)", "1.13", 1.05,
            "a random worker starts the round and is seldom late; its collective of all, each step, is what costs on a "
            "network"}}) {
    const Spread gain = over(delayed_step(lab, rival.strategy), ours);
    study.claims.push_back({format("Fig. 4: throughput of WAGMA over %s, 64 nodes", rival.name), Method::simulation,
                            rival.paper, gain.text(), gain.least() > rival.least,
                            format("%s; held to %.2f", rival.why, rival.least)});
  }
  const Spread pairs = over(delayed_step(lab, "ad-psgd"), ours);
  study.claims.push_back({"Fig. 4: only AD-PSGD has a higher throughput", Method::simulation, "shown",
                          "its time a step over WAGMA's " + pairs.text(), pairs.most() < 1,
                          "it waits for nobody, ever"});
  for (const auto& [rival, strategy, paper] :
       {std::tuple{"allreduce", "allreduce", "1.63"}, {"SGP (2)", "sgp(peers=2)", "1.45"}}) {
    const Spread gain =
        over(delayed_step(lab, strategy, 64, kCompute / 2), delayed_step(lab, wagma(8, 10), 64, kCompute / 2));
    study.claims.push_back({format("Fig. 5: 90 epochs in %sx less time than %s", paper, rival), Method::simulation,
                            paper, gain.text(), gain.least() > 1.3, "half the batch, so 0.32 s a step; held to 1.30"});
  }
  const Spread large = over(delayed_step(lab, "allreduce", 256), delayed_step(lab, wagma(16, 10), 256));
  const Spread quick = over(delayed_step(lab, "allreduce", 64, .3), delayed_step(lab, wagma(8, 10), 64, .3));
  study.claims.push_back({"Fig. 4: up to 1.37x at 256 nodes", Method::simulation, "1.37",
                          "over allreduce " + large.text() + "; 64 nodes, were a step 0.30 s: " + quick.text(),
                          large.least() > 1.3,
                          "S=16; the gain depends on the time of a step, which the paper does not give"});
}

void claim_period(Study& study, const Lab& lab) {
  std::string ours;
  std::vector<double> times;
  for (const int sync : {1, 2, 5, 10, 20, 50}) {
    const Spread time = delayed_step(lab, wagma(8, sync));
    times.push_back(-time.mean());
    ours += format("%s%d: %.3f", ours.empty() ? "" : ", ", sync, time.mean());
  }
  study.claims.push_back({"Section IV: the longer between global averages, the more is hidden", Method::simulation, "-",
                          "seconds a step by tau: " + ours, std::is_sorted(times.begin(), times.end()),
                          "0.650 if nobody ever waited; at tau=1 allreduce's 0.960"});
  const Spread all = over(delayed_step(lab, wagma(64, 10)), delayed_step(lab, wagma(8, 10)));
  study.claims.push_back(
      {"Section V-B: with S=64 throughput drops by 1.24", Method::simulation, "1.24", all.text(), all.least() > 1.1,
       "no waiting is added: a drop is six instead of three exchanges of models, which cost nothing here; "
       "1.24 would take 75 ms each"});
}

// Agreement and learning ----------------------------------------------------------------------------------------------

Spread distance(const Lab& lab, const std::string& strategy, int workers, int cycle) {
  return lab.over_seeds([&](std::uint64_t seed) {
    const std::int64_t steps = std::max<std::int64_t>(lab.steps(800) / cycle, 2) * cycle;
    Job job = job_of(nothing(workers, 32, 1, seed), strategy, steps, seed, one);
    job.lr = 1;
    return mean_consensus(job, lab.run(job), steps / 2 / cycle * cycle);
  });
}

void claim_agreement(Study& study, const Lab& lab) {
  const Spread eight = distance(lab, wagma(8, 10), 64, 60), two = distance(lab, "sgp(peers=2)", 64, 60),
               four = distance(lab, wagma(4, 10), 64, 60),
               fixed = distance(lab, "hier-avg(k1=1,k2=10,group=8)", 64, 60),
               none = distance(lab, "local-sgd(period=10)", 64, 60),
               ring = distance(lab, "d-psgd(ring,order=atc)", 64, 60);
  study.claims.push_back(
      {"Section V-B: dynamic S=8 beats S=4, that fixed groups, those no groups; SGP (2) and D-PSGD are below S=8",
       Method::simulation, "75.3, 72.8, 72.2, 68.5 %; 74.8, 71.3 %",
       "S=8 " + eight.text(3) + ", S=4 " + four.text(3) + ", fixed " + fixed.text(3) + ", none " + none.text(2) +
           "; SGP " + two.text(3) + ", D-PSGD " + ring.text(1),
       eight.most() < four.least() && four.most() < fixed.least() && fixed.most() < none.least() &&
           eight.most() < two.least() && two.most() < ring.least(),
       "mean square distance to the mean model under unit noise, 64 workers: less is better"});
  study.claims.push_back({"Section V-B: D-PSGD is better than no groups (local SGD, tau=10)", Method::simulation,
                          "71.3, 68.5 %", "D-PSGD " + ring.text(1) + ", none " + none.text(2),
                          ring.most() < none.least(),
                          "as above; a ring of 64 spreads noise slowly, a global average every 10 steps ends it"});
}

void claim_small_agreement(Study& study, const Lab& lab) {
  const Spread four = distance(lab, wagma(4, 8), 16, 16), pairs = distance(lab, wagma(2, 8), 16, 16),
               fixed = distance(lab, "hier-avg(k1=1,k2=8,group=4)", 16, 16),
               two = distance(lab, "sgp(peers=2)", 16, 16), one_peer = distance(lab, "sgp", 16, 16);
  study.claims.push_back({"Fig. 8: S=4 is best, then SGP with two peers, then with one", Method::simulation,
                          "BLEU 26.12, 26.01, 25.75",
                          "S=4 " + four.text(3) + ", SGP " + two.text(3) + " and " + one_peer.text(3),
                          four.most() < two.least() && two.most() < one_peer.least(), "as above, 16 workers, tau=8"});
  study.claims.push_back({"Fig. 8: SGP with one peer is better than fixed groups, those better than S=2",
                          Method::simulation, "BLEU 25.75, 24.79, 24.53",
                          "SGP " + one_peer.text(3) + ", fixed " + fixed.text(3) + ", S=2 " + pairs.text(3),
                          one_peer.most() < fixed.least() && fixed.most() < pairs.least(),
                          "as above; by this measure the order is the reverse"});
}

void claim_learning(Study& study, const Lab& lab) {
  const std::vector<std::pair<std::string, std::string>> strategies = {{"allreduce", "allreduce"},
                                                                       {"WAGMA", wagma(8, 10)},
                                                                       {"SGP (2 peers)", "sgp(peers=2)"},
                                                                       {"D-PSGD", "d-psgd(ring,order=atc)"},
                                                                       {"AD-PSGD", "ad-psgd"}};
  std::vector<Spread> loss(strategies.size());
  for (const std::uint64_t seed : {1, 2, 3}) {
    const Classification data(lab, 64, seed);
    for (std::size_t k = 0; k < strategies.size(); ++k) {
      Job job = delayed(lab, strategies[k].second, 64, kCompute, seed);
      job.problem = data.problem();
      job.start = {simulate::Vector(job.problem->dimensions(), 0)};
      job.lr = kLearningRate;
      const auto outcome = lab.run(job);
      loss[k].values.push_back(data.own_loss(job, outcome));
      if (seed == 1) study.plot.lines.push_back(data.curve(strategies[k].first, job, outcome));
    }
  }
  std::string ours;
  std::vector<double> means;
  for (std::size_t k = 0; k < strategies.size(); ++k) {
    ours += (k ? ", " : "") + strategies[k].first + " " + loss[k].text(4);
    means.push_back(loss[k].mean());
  }
  study.claims.push_back(
      {"Fig. 5: allreduce ends best, WAGMA close to it, then SGP (2), D-PSGD, AD-PSGD", Method::simulation,
       "75.9, 75.3, 74.8, 71.3, 66.9 %", ours, std::is_sorted(means.begin(), means.end()),
       "mean of the workers' own losses above the lowest after 300 steps of 64 workers. The first three are in the "
       "paper's order, allreduce and WAGMA within noise; a ring of 64 is worse here than random pairs, whose models "
       "are stale by a few steps only"});
}

// Uneven work ---------------------------------------------------------------------------------------------------------

double sentences(simulate::Random& random) { return std::exp(.4 * random.normal()); }
/// Fig. 9: 1.7 to 43.5 s, median below 2 s.
double episodes(simulate::Random& random) { return std::min(43.5, 1.7 + std::exp(-1.6 + 1.5 * random.normal())); }

Spread uneven_step(const Lab& lab, const std::string& strategy, int workers, std::int64_t steps, const Draw& time) {
  return lab.over_seeds([&](std::uint64_t seed) {
    const Job job = job_of(nothing(workers), strategy, steps, seed, time);
    return step_s(job, lab.run(job));
  });
}

void claim_uneven(Study& study, const Lab& lab) {
  const auto translation = [&](const std::string& strategy) {
    return uneven_step(lab, strategy, 16, lab.steps(400), sentences);
  };
  const Spread ours = translation(wagma(4, 8));
  const Spread local = over(translation("local-sgd(period=1)"), ours), push = over(translation("sgp(peers=2)"), ours),
               pairs = over(translation("ad-psgd"), ours);
  for (const auto& [rival, paper, gain] : {std::tuple{"local SGD", "1.39", local}, {"SGP (2)", "1.48", push}}) {
    study.claims.push_back({format("Section V-C: translation on 16 nodes, %sx over %s", paper, rival),
                            Method::simulation, paper, gain.text(), gain.least() > 1.2,
                            "lognormal times (sigma 0.4) for the sentences' lengths, tau=8, no network; held to 1.2"});
  }
  study.claims.push_back(
      {"Section V-C: 1.10x over AD-PSGD", Method::simulation, "1.10", pairs.text(), pairs.least() > 1,
       "AD-PSGD waits for nobody; on the paper's network its messages did not hide behind computing"});

  const int workers = lab.quick() ? 64 : 1024;
  const auto navigation = [&](const std::string& strategy) {
    return uneven_step(lab, strategy, workers, 32, episodes);
  };
  const Spread groups = navigation(wagma(lab.quick() ? 8 : 32, 8));
  const Spread barrier = over(navigation("local-sgd(period=1)"), groups),
               four = over(navigation("sgp(peers=4)"), groups),
               ring = over(navigation("d-psgd(ring,order=atc)"), groups);
  study.claims.push_back(
      {format("Fig. 10: reinforcement learning on %d nodes, 2.33x over local SGD", workers), Method::simulation,
       "2.33 (1024)", barrier.text(), barrier.least() > 2,
       "times 1.7 s + lognormal(-1.6, 1.5), at most 43.5 s, after Fig. 9; tau=8; a network would make "
       "all of them more alike"});
  study.claims.push_back({"Fig. 10: 2.10x over SGP (4 peers)", Method::simulation, "2.10", four.text(),
                          four.least() > 1.5,
                          "a push waits for four others, at each step for other ones; held to 1.5"});
  study.claims.push_back({"Fig. 10: 1.88x over D-PSGD", Method::simulation, "1.88", ring.text(), ring.least() > 1.5,
                          "without the cost of messages a ring that waits for two neighbours is quicker than a global "
                          "average every 8 steps"});
}

}  // namespace

Study study_wagma(const Lab& lab) {
  Study study{.name = "wagma",
              .title =
                  "Li et al., Breaking (Global) Barriers in Parallel Stochastic Optimization with Wait-Avoiding Group "
                  "Averaging",
              .setting =
                  "Seeds 1, 2, 3; a figure of several is their mean, with the lowest and the highest. Messages cost "
                  "nothing. Unless said otherwise 64 workers, 0.64 s a step (an estimate for ResNet-50 on a P100), "
                  "two random workers 0.32 s late at each step, S=8, tau=10. Learning: softmax classification of "
                  "made-up points (half of a worker's are of its own class), 10 classes, batch 8, learning rate 0.1.",
              .claims = {},
              .plot_in_words = "Loss of the workers' mean model, seed 1, two late workers a step.",
              .plot = {.title = "WAGMA: loss over time, 64 workers",
                       .x_name = "virtual time, s",
                       .y_name = "loss above the lowest",
                       .lines = {}}};
  claim_protocol(study, lab);
  claim_throughput(study, lab);
  claim_period(study, lab);
  claim_agreement(study, lab);
  claim_small_agreement(study, lab);
  claim_learning(study, lab);
  claim_uneven(study, lab);
  return study;
}

}  // namespace paceline::cli::reproduce
