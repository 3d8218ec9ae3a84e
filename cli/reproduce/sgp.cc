#include <algorithm>
#include <cmath>

#include "algorithms/simulate/scenario.h"
#include "cli/reproduce/formulas.h"
#include "cli/reproduce/lab.h"

namespace paceline::cli::reproduce {
namespace {

using simulate::Job;

void claim_exact(Study& study, const Lab& lab) {
  std::vector<Check> checks;
  for (const int workers : {8, 64}) {
    Job job = job_of(nothing(workers), "sgp", std::lround(std::log2(workers)), 1, one);
    job.start.clear();
    for (int i = 0; i < workers; ++i) job.start.push_back({static_cast<double>(i)});
    const double apart = std::sqrt(consensus(last_models(job, lab.run(job))));
    checks.push_back({format("P=%d, apart after %d steps by, in 1e-9", workers, static_cast<int>(job.steps)),
                      {{1e9 * apart}},
                      Bound::at_most(1),
                      0});
  }
  study.claims.push_back({"Appendix A.1: the directed exponential graph passes everything on to all in log2 P steps",
                          Method::simulation, "-", checks,
                          "mixing only, from 0 .. P-1; where P is a power of two all then have the exact mean",
                          Evidence::by_construction});
}

// Time: 90 epochs of 1.28 million samples, 256 a node -----------------------------------------------------------------

constexpr double kSteps32 = 14'075;
constexpr double kCompute = .228;     ///< 4.384 steps/s of one node.
constexpr double kEthernet = .18;     ///< That a model of 100 MB takes on a link, by SGP's measured time.
constexpr double kInfiniBand = .008;  ///< The same at 100 Gbit/s.

double hours(double step) { return kSteps32 * step / 3600; }

void claim_hours(Study& study) {
  const double push = kCompute + kEthernet, two = kCompute + 2 * kEthernet, symmetric = kCompute + 2 * kEthernet,
               all = kCompute + doubling_s(32, kEthernet), ring = kCompute + ring_s(32, kEthernet);
  const std::string model = "c + k t_B a step, c=0.228 s, t_B=0.18 s for 100 MB, fitted to SGP's 1.6 h";
  const auto add = [&](const char* text, const char* paper, std::vector<Check> checks, const std::string& why) {
    study.claims.push_back({text, Method::closed_form, paper, std::move(checks), why, Evidence::fitted});
  };
  add("32 nodes, 10 Gbit/s Ethernet: SGP takes 1.6 h", "1.6", {{"h", {{hours(push)}}, Bound::within(1.6, .05)}}, model);
  add("Abstract, conclusion: up to 3x faster than allreduce, where that sends log2 P whole models one after the other",
      "5.1 of 1.6 h: 3.19", {{"", {{all / push}}, Bound::speedup(3)}}, model + "; recursive doubling");
  add("The same, where allreduce is a ring", "5.1 of 1.6 h: 3.19", {{"", {{ring / push}}, Bound::speedup(3)}},
      model + "; 3x is what the slowest allreduce costs, and a ring is what most libraries use for 100 MB");
  add("SGP takes less than D-PSGD, which needs answers", "2.6 of 1.6 h: 1.63",
      {{"", {{symmetric / push}}, Bound::speedup(1.63)}},
      model + "; D-PSGD: one model out and one in, one after the other");
  add("Fig. 1b: SGP is roughly 200 ms a step faster than D-PSGD", "200",
      {{"ms", {{1e3 * (symmetric - push)}}, Bound::within(200, 25), 0}}, model);
  add("Section 5.3: a second peer costs 27 % a step", "2.1 h, 1.27",
      {{"a step over that of one peer", {{two / push}}, Bound::within(1.27, .1)}},
      model + "; twice the bytes should cost more than the paper measured");
  add("Section 5.3: SGP with two peers is still faster than D-PSGD and allreduce", "2.1, 2.6, 5.1 h",
      {{"D-PSGD's time over its", {{symmetric / two}}, Bound::above(1)},
       {"allreduce's", {{all / two}}, Bound::above(1)},
       {"a ring's", {{ring / two}}, Bound::above(1)}},
      model + "; by this model two out cost what one out and one in do");
  study.claims.push_back(
      {"Section 5.2: 100 Gbit/s InfiniBand, SGP is on par with allreduce",
       Method::closed_form,
       "1.20 of 1.16 h: 1.03",
       {{"", {{(kCompute + ring_s(32, kInfiniBand)) / (kCompute + kInfiniBand)}}, Bound::within(1.03, .03)}},
       "t_B=8 ms is what 100 MB take at the nominal rate; ring allreduce",
       Evidence::by_construction});
}

/// A step of computing that varies by a tenth, and what its messages take.
double jittered(const Lab& lab, const std::string& strategy, int workers, double transfer, std::uint64_t seed) {
  const Draw time = [=](simulate::Random& random) { return transfer + kCompute * std::exp(.1 * random.normal()); };
  const Job job = job_of(nothing(workers), strategy, lab.steps(300), seed, time);
  return step_s(job, lab.run(job));
}

void claim_scaling(Study& study, const Lab& lab) {
  const auto efficiency = [&](const std::string& strategy, const std::function<double(int)>& transfer) {
    return lab.over_seeds([&](std::uint64_t seed) {
      return 100 * jittered(lab, strategy, 4, transfer(4), seed) / jittered(lab, strategy, 32, transfer(32), seed);
    });
  };
  const auto same = [](double transfer) { return [=](int) { return transfer; }; };
  const std::string why =
      "time a step of 4 nodes over that of 32, %; computing varies by 10 % (lognormal), the transfer is added to each "
      "step";
  study.claims.push_back({"Fig. 9: from 4 to 32 nodes SGP scales with 88.6 % on Ethernet and 92.4 % on InfiniBand",
                          Method::simulation,
                          "88.6, 92.4 %",
                          {{"Ethernet", efficiency("sgp", same(kEthernet)), Bound::within(88.6, 5), 1},
                           {"InfiniBand", efficiency("sgp", same(kInfiniBand)), Bound::within(92.4, 5), 1}},
                          why + "; links that others use too, and loading data, are not in it"});
  study.claims.push_back(
      {"Fig. 1b: the time a step stays almost constant for SGP and D-PSGD and grows for allreduce",
       Method::simulation,
       "shown",
       {{"SGP", efficiency("sgp", same(kEthernet)), Bound::at_least(95), 1},
        {"D-PSGD", efficiency("d-psgd(bipartite,order=atc)", same(2 * kEthernet)), Bound::at_least(95), 1},
        {"allreduce, recursive doubling",
         efficiency("allreduce", [](int workers) { return doubling_s(workers, kEthernet); }), Bound::at_most(70), 1},
        {"allreduce, ring", efficiency("allreduce", [](int workers) { return ring_s(workers, kEthernet); }),
         Bound::at_most(95), 1}},
       why,
       Evidence::by_construction});
}

void claim_stragglers(Study& study, const Lab& lab) {
  const auto ratio = [&](const std::string& strategy) {
    return lab.over_seeds([&](std::uint64_t seed) {
      const auto time = [&](const std::string& name) {
        const simulate::Scenario scenario{.workers = 32,
                                          .steps = lab.steps(300),
                                          .compute = simulate::Constant{kCompute},
                                          .straggle = {.worker = {}, .count = 1, .delay_s = kCompute},
                                          .seed = seed};
        const Job job = simulate::scenario_job(scenario, nothing(32), name, false);
        return step_s(job, lab.run(job));
      };
      return time("allreduce") / time(strategy);
    });
  };
  study.claims.push_back(
      {"Section 1: allreduce is sensitive to slow nodes, SGP less so",
       Method::simulation,
       "-",
       {{"time a step of allreduce over SGP's", ratio("sgp"), Bound::above(1.25)},
        {"over D-PSGD's", ratio("d-psgd(bipartite,order=atc)"), Bound::above(1.25)}},
       "one random node of 32 takes twice as long at each step; no network; of at most 2, half of what can be gained"});
}

// Agreement and learning ----------------------------------------------------------------------------------------------

void claim_gossip_agreement(Study& study, const Lab& lab) {
  const auto distance = [&](const std::string& strategy) {
    return lab.over_seeds([&](std::uint64_t seed) {
      Job job = job_of(nothing(32, 32, 1, seed), strategy, lab.steps(400), seed, one);
      job.lr = 1;
      return mean_consensus(job, lab.run(job), job.steps / 2);
    });
  };
  const Spread first = distance("sgp"), second = distance("sgp(peers=2)"),
               bipartite = distance("d-psgd(bipartite,order=atc)");
  study.claims.push_back({"Section 5.3: two peers average better than one, and SGP better than D-PSGD (agreement)",
                          Method::simulation,
                          "75.4 of 75.0 % accuracy",
                          {{"one peer over two", first / second, Bound::above(1)},
                           {"D-PSGD (bipartite) over one", bipartite / first, Bound::above(1)}},
                          "mean square distance to the mean model under unit noise, 32 nodes; the accuracies of real "
                          "networks are on [a page of their own](real-networks.md), and within noise"});
}

struct Learned {
  double spread;  ///< Highest less lowest loss of a node.
  double loss;    ///< Mean of the nodes' own losses.
};

/// 32 nodes; the learning rate falls to a tenth at 40, 70 and 85 % of the steps. Ends after `share` of them.
Learned learn(const Lab& lab, const Classification& data, const std::string& strategy, double share,
              std::uint64_t seed) {
  const auto total = static_cast<double>(lab.steps(1000));
  const auto scale = [=](Version step) {
    const double at = static_cast<double>(step.value) / total;
    return at < .4 ? 1 : at < .7 ? .1 : at < .85 ? .01 : .001;
  };
  Job job =
      job_of(std::make_shared<Seen>(data.problem(), nullptr, scale), strategy, std::lround(share * total), seed, one);
  job.lr = kLearningRate;
  std::vector<double> losses;
  for (const auto& model : last_models(job, lab.run(job))) losses.push_back(data.loss(model));
  const auto [least, most] = std::minmax_element(losses.begin(), losses.end());
  return {*most - *least, Spread{losses}.mean()};
}

void claim_gossip_learning(Study& study, const Lab& lab) {
  Spread before, after, two, dpsgd, exact;
  for (const std::uint64_t seed : {1, 2, 3}) {
    const Classification data(lab, 32, seed);
    before.values.push_back(learn(lab, data, "sgp", .4, seed).spread);
    const Learned push = learn(lab, data, "sgp", 1, seed), second = learn(lab, data, "sgp(peers=2)", 1, seed);
    after.values.push_back(push.spread);
    exact.values.push_back(second.loss / learn(lab, data, "allreduce", 1, seed).loss);
    two.values.push_back(push.loss / second.loss);
    dpsgd.values.push_back(learn(lab, data, "d-psgd(bipartite,order=atc)", 1, seed).loss / push.loss);
  }
  study.claims.push_back({"Fig. 7: all nodes come to the same error as the learning rate falls",
                          Method::simulation,
                          "shown",
                          {{"highest less lowest loss of a node, at the end over before the first decay",
                            after / before, Bound::below(.1), 5}},
                          "32 nodes, decays at 40, 70 and 85 %; how far models differ is proportional to the rate, "
                          "which falls to a thousandth",
                          Evidence::by_construction});
  study.claims.push_back({"Fig. 1c, 3: allreduce ends best, then SGP with two peers, with one, D-PSGD",
                          Method::simulation,
                          "76.2, 75.4, 75.0 %, D-PSGD below",
                          {{"loss with two peers over allreduce's", exact, Bound::above(1), 3},
                           {"one peer over two", two, Bound::above(1), 3},
                           {"D-PSGD over one peer", dpsgd, Bound::above(1), 3}},
                          "mean of the nodes' own losses above the lowest, 32 nodes; an order, so under every seed"});
}

/// Fig. 1a and 3: what is learnt over time.
void claim_time_to_loss(Study& study, const Lab& lab) {
  Spread doubling, ring, symmetric;
  for (const std::uint64_t seed : {1, 2, 3}) {
    const Classification data(lab, 32, seed);
    const auto curve = [&](const std::string& strategy, double transfer) {
      Job job = job_of(data.problem(), strategy, lab.steps(1000), seed,
                       [=](simulate::Random&) { return kCompute + transfer; });
      job.lr = kLearningRate;
      return data.curve(strategy, job, lab.run(job));
    };
    const PlotLine push = curve("sgp", kEthernet), all = curve("allreduce", doubling_s(32, kEthernet));
    const double target = 1.1 * level(all);
    doubling.values.push_back(sooner(all, push, target));
    ring.values.push_back(sooner(curve("allreduce", ring_s(32, kEthernet)), push, target));
    symmetric.values.push_back(sooner(curve("d-psgd(bipartite,order=atc)", 2 * kEthernet), push, target));
  }
  const auto add = [&](const char* than, const char* paper, double speedup, const Spread& gain) {
    study.claims.push_back(
        {format("Fig. 1a, 3: SGP is sooner than %s at the same loss", than),
         Method::simulation,
         paper,
         {{"times sooner", gain, Bound::speedup(speedup)}},
         "32 nodes, a fixed rate; to 1.1 times the loss above the lowest that allreduce comes to, of "
         "the mean model; times a step as above, without jitter",
         Evidence::fitted});
  };
  add("allreduce by recursive doubling", "5.1 of 1.6 h", 3.19, doubling);
  add("allreduce by a ring", "5.1 of 1.6 h", 3.19, ring);
  add("D-PSGD", "2.6 of 1.6 h", 1.63, symmetric);
}

void plot(Study& study) {
  study.plot.lines = {{"SGP, one peer", {}},
                      {"SGP, two peers; D-PSGD", {}},
                      {"allreduce, ring", {}},
                      {"allreduce, recursive doubling", {}}};
  for (int workers = 2; workers <= 32; workers *= 2) {
    study.plot.lines[0].points.emplace_back(workers, kCompute + kEthernet);
    study.plot.lines[1].points.emplace_back(workers, kCompute + 2 * kEthernet);
    study.plot.lines[2].points.emplace_back(workers, kCompute + ring_s(workers, kEthernet));
    study.plot.lines[3].points.emplace_back(workers, kCompute + doubling_s(workers, kEthernet));
  }
}

}  // namespace

Study study_sgp(const Lab& lab) {
  Study study{.name = "sgp",
              .title = "Stochastic Gradient Push for Distributed Deep Learning (submission to ICLR 2019)",
              .setting =
                  "Seeds 1, 2, 3; a figure of several is their mean, with the lowest and the highest. What "
                  "transfers take are closed forms. Learning: 1000 steps of "
                  "softmax classification of made-up points (half of a worker's are of its own class), 10 classes, "
                  "batch 8, learning rate 0.1.",
              .claims = {},
              .plot_in_words = "Time a step by the closed forms, 10 Gbit/s Ethernet.",
              .plot = {.title = "SGP: time a step on 10 Gbit/s Ethernet",
                       .x_name = "nodes",
                       .y_name = "seconds a step",
                       .lines = {}},
              .plotted = "Abstract, conclusion: up to 3x"};
  claim_exact(study, lab);
  claim_hours(study);
  claim_scaling(study, lab);
  claim_stragglers(study, lab);
  claim_gossip_agreement(study, lab);
  claim_gossip_learning(study, lab);
  claim_time_to_loss(study, lab);
  study.claims.push_back(
      not_tried("Abstract, conclusion: top-1 accuracy on ImageNet as allreduce's up to 8 nodes, within "
                "1.2 % on more; better than D-PSGD's",
                "75.0 of 76.2 % on 32 nodes", "ImageNet on GPUs; rows of the small real networks compare accuracies"));
  plot(study);
  return study;
}

}  // namespace paceline::cli::reproduce
