#include <algorithm>
#include <cmath>

#include "algorithms/period.h"
#include "cli/reproduce/formulas.h"
#include "cli/reproduce/lab.h"

namespace paceline::cli::reproduce {
namespace {

using simulate::Job;

/// An averaging among the job's workers takes `seconds`: recursive doubling, each phase its share.
void averaging_takes(Job& job, double seconds) {
  job.latency_s = seconds / std::ceil(std::log2(job.problem->workers()));
}

std::string local_sgd(int tau) { return format("local-sgd(period=%d)", tau); }

void claim_speedups(Study& study) {
  std::string ours;
  for (const auto& [alpha, tau] : {std::pair{.9, 10}, {.9, 100}, {.5, 10}, {.1, 10}, {4.0, 10}, {4.0, 100}})
    ours += format("%sa=%.1f, tau=%d: %.3f", ours.empty() ? "" : "; ", alpha, tau, period_speedup(alpha, tau));
  study.claims.push_back(
      {"Fig. 4: an averaging that takes a times a step is hidden by a period tau; almost twice as "
       "fast at a=0.9",
       Method::closed_form, "almost 2 (a=0.9)", ours, period_speedup(.9, 100) > 1.8,
       "eq. 12, (1 + a) / (1 + a / tau)"});
}

/// Time a step of 16 workers, exponential times of mean 1 and an averaging that takes 1.
double runtime(const Lab& lab, int tau, std::uint64_t seed, int workers = 16) {
  Job job = job_of(nothing(workers), local_sgd(tau), lab.steps(2000), seed, exponential());
  averaging_takes(job, 1);
  return step_s(job, lab.run(job));
}

void claim_runtimes(Study& study, const Lab& lab) {
  const Spread sync = lab.over_seeds([&](std::uint64_t seed) { return runtime(lab, 1, seed); });
  const Spread ten = lab.over_seeds([&](std::uint64_t seed) { return runtime(lab, 10, seed); });
  const double sync_s = harmonic(16) + 1, ten_s = slowest_mean(16, 10) + .1;
  study.claims.push_back(
      {"Fig. 5: the mean time a step of local SGD (tau=10) is far below that of synchronous SGD; 16 workers, "
       "exponential "
       "times, y=D=1",
       Method::simulation, "two densities without numbers",
       "tau=1: " + sync.text(3) + format(" s, exactly %.3f", sync_s) + "; tau=10: " + ten.text(3) +
           format(" s, exactly %.3f; ratio %.2f", ten_s, sync.mean() / ten.mean()),
       std::abs(sync.mean() / ten.mean() - sync_s / ten_s) < (lab.quick() ? .4 : .1),
       "exactly: H_16 + D, and the mean longest of 16 Erlang(10) means + D / 10"});
  std::string ours;
  std::vector<double> ratios;
  for (const int workers : {4, 16, 64}) {
    ratios.push_back((harmonic(workers) + 1) / (slowest_mean(workers, 10) + .1));
    ours += format("%sm=%d: %.2f", ours.empty() ? "" : ", ", workers, ratios.back());
  }
  study.claims.push_back({"Section 3.2: local updates mitigate stragglers; synchronous SGD's time grows as log m",
                          Method::closed_form, "-", ours, std::is_sorted(ratios.begin(), ratios.end()),
                          "time of tau=1 over tau=10; grows with m"});
}

void claim_bounds(Study& study) {
  const ErrorBound one{.tau = 1, .step_s = harmonic(16) + 1}, ten{.tau = 10, .step_s = slowest_mean(16, 10) + .1};
  study.claims.push_back({"Fig. 6: a long period lowers the bound sooner but to a higher floor; the curves cross",
                          Method::closed_form, "crossing shown, no number",
                          format("floors %.4f (tau=1), %.4f (tau=10); they cross at T=%.0f", one.floor(), ten.floor(),
                                 crossing_s(one, ten)),
                          one.floor() < ten.floor() && crossing_s(one, ten) > 0,
                          "eq. 13 with the constants of Fig. 6"});
  const auto best = [](double time) { return algorithms::optimal_period(1, 1, .08, 1, 1, time); };
  study.claims.push_back({"Theorem 2: the best period falls as 1/sqrt(T)", Method::closed_form, "eq. 14",
                          format("T=100: %.2f, T=400: %.3f, T=3906: %.2f", best(100), best(400), best(3906.25)),
                          std::abs(best(100) / best(400) - 2) < 1e-9, "F_1=D=L=sigma^2=1, eta=0.08"});
}

// Learning ------------------------------------------------------------------------------------------------------------

constexpr double kTargetAboveSync = 1.1;

struct Race {
  PlotLine sync, adacomm, quick;  ///< Loss over time, of allreduce, AdaComm and a period of 100.
  double gain() const {
    const double target = kTargetAboveSync * level(sync);
    return time_to(sync, target) / time_to(adacomm, target);
  }
};

PlotLine learn(const Lab& lab, const Classification& data, const std::string& strategy, std::int64_t steps,
               double alpha, double momentum, std::uint64_t seed) {
  Job job = job_of(data.problem(), strategy, steps, seed, [](simulate::Random&) { return 1.0; });
  averaging_takes(job, alpha);
  job.lr = momentum > 0 ? .02 : kLearningRate;
  job.momentum = momentum;
  return data.curve(strategy, job, lab.run(job));
}

/// All get the time that allreduce takes for 4000 steps.
Race race(const Lab& lab, double alpha, int tau_0, double momentum, std::uint64_t seed) {
  const Classification data(lab, 4, seed);
  const std::int64_t steps = lab.steps(4000);
  const double time = static_cast<double>(steps) * (1 + alpha);
  const auto steps_of = [&](double tau) { return static_cast<std::int64_t>(time / (1 + alpha / tau)); };
  const std::string adacomm =
      format("adacomm(period=%d,interval=%.0fs,block_momentum=%.1f)", tau_0, time / 25, momentum > 0 ? .3 : 0);
  return {learn(lab, data, "allreduce", steps, alpha, momentum, seed),
          learn(lab, data, adacomm, steps_of(3), alpha, momentum, seed),
          learn(lab, data, local_sgd(100), steps_of(100), alpha, momentum, seed)};
}

void claim_race(Study& study, const Lab& lab, const std::string& text, const std::string& paper, double least,
                double alpha, int tau_0, double momentum = 0) {
  const Spread gain =
      lab.over_seeds([&](std::uint64_t seed) { return race(lab, alpha, tau_0, momentum, seed).gain(); });
  study.claims.push_back(
      {text, Method::simulation, paper, gain.text(), gain.mean() >= least,
       format("time of allreduce over time of AdaComm (tau_0=%d) to 1.1 times the loss above the lowest that allreduce "
              "comes to; a=%.1f; held to a mean of at least %.1f",
              tau_0, alpha, least)});
}

/// Time to a loss far from the end, of allreduce over that of a period of 100. Short runs, so that the curves are fine.
double early_gain(const Lab& lab, double far, std::uint64_t seed) {
  const Classification data(lab, 4, seed);
  const PlotLine sync = learn(lab, data, "allreduce", 100, 4, 0, seed);
  const PlotLine quick = learn(lab, data, local_sgd(100), 480, 4, 0, seed);
  return time_to(sync, far) / time_to(quick, far);
}

void claim_floors(Study& study, const Lab& lab) {
  Spread early, floor;
  for (const std::uint64_t seed : {1, 2, 3}) {
    const Race r = race(lab, 4, 20, 0, seed);
    early.values.push_back(early_gain(lab, 4 * level(r.sync), seed));
    floor.values.push_back(level(r.quick) / level(r.sync));
    if (seed == 1) study.plot.lines = {r.sync, r.quick, r.adacomm};
  }
  study.claims.push_back(
      {"Fig. 9: a large period (tau=100) drops rapidly at first but ends on a higher floor", Method::simulation,
       "shown",
       "to 4 times the loss that allreduce comes to in 1 / " + early.text() +
           " of its time; loss in the last quarter over allreduce's " + floor.text(),
       early.least() > 1.5 && floor.least() > 1.1,
       "a=4 as for VGG-16; the loss is that of the mean of the workers' models, also between averages"});
}

/// How much higher the loss of a worker's own model is than that of their mean, just before an averaging.
double local_gap(const Lab& lab, int tau, std::uint64_t seed) {
  const Classification data(lab, 4, seed);
  const std::int64_t blocks = lab.steps(600) / tau;
  Job job = job_of(data.problem(), local_sgd(tau), blocks * tau - 1, seed, [](simulate::Random&) { return 1.0; });
  job.lr = kLearningRate;
  const auto outcome = lab.run(job);
  return data.own_loss(job, outcome) / data.loss(outcome.summary.model);
}

void claim_gap(Study& study, const Lab& lab) {
  const auto gap = [&](int tau) {
    return lab.over_seeds([&](std::uint64_t seed) { return local_gap(lab, tau, seed); });
  };
  const Spread five = gap(5), fifteen = gap(15), fifty = gap(50);
  study.claims.push_back({"Appendix B: models are worse before they are averaged than after (tau=15)",
                          Method::simulation, "accuracy about 10 % lower",
                          "loss above the lowest of a worker's own over that of the mean model: tau=5 " + five.text() +
                              ", tau=15 " + fifteen.text() + ", tau=50 " + fifty.text(),
                          fifteen.least() > 1 && five.mean() < fifteen.mean() && fifteen.mean() < fifty.mean(),
                          "grows with the period; one step before the last averaging"});
}

}  // namespace

Study study_adacomm(const Lab& lab) {
  Study study{.name = "adacomm",
              .title =
                  "Wang and Joshi, Adaptive Communication Strategies to Achieve the Best Error-Runtime Trade-off "
                  "in Local-Update SGD",
              .setting =
                  "Seeds 1, 2, 3; a figure of several is their mean, with the lowest and the highest. Learning: "
                  "4 workers, softmax classification of made-up points (half of a worker's are of its own "
                  "class), 10 classes, batch 8, learning rate 0.1 (0.02 with momentum 0.9), AdaComm's interval "
                  "1/25 of the time that 4000 steps of allreduce take.",
              .claims = {},
              .plot_in_words = "Loss of the mean model, seed 1, a=4.",
              .plot = {.title = "AdaComm: loss over time, an averaging takes 4 steps",
                       .x_name = "virtual time, in steps of computing",
                       .y_name = "loss above the lowest",
                       .lines = {}}};
  claim_speedups(study);
  claim_runtimes(study, lab);
  claim_bounds(study);
  claim_floors(study, lab);
  claim_race(study, lab, "Fig. 9a: VGG-16 reaches 4e-3 in 15.5 instead of 33.5 min", "2.16", 2, 4, 20);
  claim_race(study, lab, "Fig. 10: ResNet-50 reaches 3e-2 in 15.0 instead of 21.5 min", "1.43", 1.2, .5, 5);
  claim_race(study, lab, "Fig. 11: with block momentum 0.3 (local momentum 0.9) 19.0 instead of 66.7 min", "3.5", 2, 4,
             20, .9);
  claim_gap(study, lab);
  return study;
}

}  // namespace paceline::cli::reproduce
