#include <algorithm>
#include <cmath>

#include "algorithms/simulate/scenario.h"
#include "cli/reproduce/formulas.h"
#include "cli/reproduce/lab.h"

namespace paceline::cli::reproduce {
namespace {

using simulate::Job;

double one(simulate::Random&) { return 1; }

void claim_exact(Study& study, const Lab& lab) {
  std::string ours;
  bool holds = true;
  for (const int workers : {8, 64}) {
    Job job = job_of(nothing(workers), "sgp", std::lround(std::log2(workers)), 1, one);
    job.start.clear();
    for (int i = 0; i < workers; ++i) job.start.push_back({static_cast<double>(i)});
    const double apart = std::sqrt(consensus(last_models(job, lab.run(job))));
    ours += format("%sP=%d: %d steps, then apart by %.2g", ours.empty() ? "" : "; ", workers,
                   static_cast<int>(job.steps), apart);
    holds = holds && apart < 1e-9;
  }
  study.claims.push_back({"Appendix A.1: the directed exponential graph passes everything on to all in log2 P steps",
                          Method::simulation, "-", ours, holds,
                          "mixing only, from 0 .. P-1; where P is a power of two all then have the exact mean"});
}

// Time: 90 epochs of 1.28 million samples, 256 a node -----------------------------------------------------------------

constexpr double kSteps32 = 14'075;
constexpr double kCompute = .228;  ///< 4.384 steps/s of one node.
constexpr double kEthernet = .18;  ///< That a model of 100 MB takes on a link, by SGP's measured time.

double hours(double step) { return kSteps32 * step / 3600; }

void claim_hours(Study& study) {
  const double push = hours(kCompute + kEthernet), two = hours(kCompute + 2 * kEthernet),
               all = hours(kCompute + doubling_s(32, kEthernet)), ring = hours(kCompute + ring_s(32, kEthernet));
  const std::string why = "c + k t_B a step, c=0.228 s, t_B=0.18 s for 100 MB, fitted to SGP's 1.6 h";
  study.claims.push_back({"32 nodes, 10 Gbit/s Ethernet: SGP takes 1.6 h, up to 3x less than allreduce",
                          Method::closed_form, "1.6 h of 5.1 h: 3.19",
                          format("recursive doubling: %.1f h of %.1f h: %.2f; ring: of %.1f h: %.2f", push, all,
                                 all / push, ring, ring / push),
                          all / push > 2.5,
                          why + "; only an allreduce of log2 P whole models is so slow, a ring is not; held to 2.5"});
  study.claims.push_back({"SGP takes less than D-PSGD, which needs answers", Method::closed_form,
                          "1.6 h of 2.6 h: 1.63", format("%.1f h of %.1f h: %.2f", push, two, two / push),
                          two / push > 1.3,
                          why + "; D-PSGD: one model out and one in, one after the other; held to 1.3"});
  study.claims.push_back({"A second peer costs 27 % a step", Method::closed_form, "2.1 h, 1.27",
                          format("%.1f h, %.2f", two, two / push), std::abs(two / push - 1.27) < .1,
                          why + "; twice the bytes should cost more than the paper measured"});
  const double fast = .008;
  const double ratio = (kCompute + ring_s(32, fast)) / (kCompute + fast);
  study.claims.push_back({"100 Gbit/s InfiniBand: SGP is on par with allreduce", Method::closed_form,
                          "1.16 h of 1.20 h: 1.03", format("%.2f", ratio), std::abs(ratio - 1.03) < .03,
                          "t_B=8 ms, ring allreduce"});
}

/// Time a step of `workers`, whose computing varies by a tenth.
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
  const Spread ethernet = efficiency("sgp", [](int) { return kEthernet; }),
               fast = efficiency("sgp", [](int) { return .008; }),
               all = efficiency("allreduce", [](int workers) { return doubling_s(workers, kEthernet); });
  study.claims.push_back(
      {"From 4 to 32 nodes SGP's time a step stays almost constant, allreduce's grows", Method::simulation,
       "88.6 % on Ethernet, 92.4 % on InfiniBand",
       "SGP " + ethernet.text(1) + " %, on InfiniBand " + fast.text(1) + " %; allreduce by recursive doubling " +
           all.text(1) + " %",
       ethernet.least() > 85 && fast.least() > 85 && all.most() < 70,
       "computing varies by 10 % (lognormal); the simulator waits for neighbours, the transfer is added "
       "to each step"});
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
  const Spread push = ratio("sgp"), bipartite = ratio("d-psgd(bipartite,order=atc)");
  study.claims.push_back({"Section 1: allreduce is sensitive to slow nodes, SGP less so", Method::simulation, "-",
                          "time a step of allreduce over SGP's " + push.text() + ", over D-PSGD's " + bipartite.text(),
                          push.least() > 1.2, "one random node of 32 takes twice as long at each step; no network"});
}

// Agreement and learning ----------------------------------------------------------------------------------------------

void claim_agreement(Study& study, const Lab& lab) {
  const auto distance = [&](const std::string& strategy) {
    return lab.over_seeds([&](std::uint64_t seed) {
      Job job = job_of(nothing(32, 32, 1, seed), strategy, lab.steps(400), seed, one);
      job.lr = 1;
      return mean_consensus(job, lab.run(job), job.steps / 2);
    });
  };
  const Spread first = distance("sgp"), second = distance("sgp(peers=2)"),
               bipartite = distance("d-psgd(bipartite,order=atc)");
  study.claims.push_back(
      {"Section 5.3: two peers average better than one, and SGP better than D-PSGD", Method::simulation,
       "75.4 of 75.0 % accuracy",
       "two " + second.text(3) + ", one " + first.text(3) + ", D-PSGD (bipartite) " + bipartite.text(3),
       second.most() < first.least() && first.most() < bipartite.least(),
       "mean square distance to the mean model under unit noise, 32 nodes"});
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

void claim_learning(Study& study, const Lab& lab) {
  std::vector<double> before, after, two, dpsgd, exact;
  for (const std::uint64_t seed : {1, 2, 3}) {
    const Classification data(lab, 32, seed);
    before.push_back(learn(lab, data, "sgp", .4, seed).spread);
    const Learned push = learn(lab, data, "sgp", 1, seed);
    after.push_back(push.spread);
    two.push_back(learn(lab, data, "sgp(peers=2)", 1, seed).loss / push.loss);
    dpsgd.push_back(learn(lab, data, "d-psgd(bipartite,order=atc)", 1, seed).loss / push.loss);
    exact.push_back(learn(lab, data, "allreduce", 1, seed).loss / push.loss);
  }
  study.claims.push_back({"Fig. 7: all nodes come to the same error as the learning rate falls", Method::simulation,
                          "shown",
                          "highest less lowest loss of a node: " + Spread{before}.text(3) +
                              " before the first decay, " + Spread{after}.text(5) + " at the end",
                          Spread{after}.most() < .1 * Spread{before}.least(), "32 nodes, decays at 40, 70 and 85 %"});
  study.claims.push_back(
      {"Section 5: allreduce ends best, then SGP with two peers, with one, D-PSGD", Method::simulation,
       "76.2, 75.4, 75.0 %, D-PSGD below",
       "loss over SGP's: allreduce " + Spread{exact}.text(3) + ", two peers " + Spread{two}.text(3) + ", D-PSGD " +
           Spread{dpsgd}.text(3),
       Spread{exact}.mean() < Spread{two}.mean() && Spread{two}.mean() < 1 && Spread{dpsgd}.mean() > 1,
       "mean of the nodes' own losses above the lowest, 32 nodes"});
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
                       .lines = {}}};
  claim_exact(study, lab);
  claim_hours(study);
  claim_scaling(study, lab);
  claim_stragglers(study, lab);
  claim_agreement(study, lab);
  claim_learning(study, lab);
  plot(study);
  return study;
}

}  // namespace paceline::cli::reproduce
