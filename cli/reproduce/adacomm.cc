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
  std::vector<Check> checks;
  for (const auto& [alpha, tau] : {std::pair{.9, 10}, {.9, 100}, {.5, 10}, {.1, 10}, {4.0, 10}, {4.0, 100}}) {
    const Bound bound = alpha == .9 && tau == 100 ? Bound::within(2, .2) : Bound::above(1);
    checks.push_back({format("a=%.1f, tau=%d", alpha, tau), {{period_speedup(alpha, tau)}}, bound, 3});
  }
  study.claims.push_back(
      {"Fig. 4: an averaging that takes a times a step is hidden by a period tau; almost twice as fast at a=0.9",
       Method::closed_form, "almost 2 (a=0.9)", checks, "eq. 12, (1 + a) / (1 + a / tau)", Evidence::by_construction});
}

/// Time a step of 16 workers, exponential times of mean 1 and an averaging that takes 1.
double runtime(const Lab& lab, int tau, std::uint64_t seed) {
  Job job = job_of(nothing(16), local_sgd(tau), lab.steps(2000), seed, exponential());
  averaging_takes(job, 1);
  return step_s(job, lab.run(job));
}

void claim_runtimes(Study& study, const Lab& lab) {
  const Spread sync = lab.over_seeds([&](std::uint64_t seed) { return runtime(lab, 1, seed); });
  const Spread ten = lab.over_seeds([&](std::uint64_t seed) { return runtime(lab, 10, seed); });
  const double sync_s = harmonic(16) + 1, ten_s = slowest_mean(16, 10) + .1, off = lab.quick() ? .15 : .03;
  study.claims.push_back(
      {"Fig. 5: the mean time a step of local SGD (tau=10) is far below that of synchronous SGD; 16 workers, "
       "exponential times, y=D=1",
       Method::simulation,
       "two densities without numbers",
       {{"s a step at tau=1", sync, Bound::within(sync_s, off * sync_s), 3},
        {"at tau=10", ten, Bound::within(ten_s, off * ten_s), 3},
        {"ratio", sync / ten, Bound::above(2)}},
       "H_16 + D, and the mean longest of 16 Erlang(10) means + D / 10, to 3 %",
       Evidence::by_construction});
  std::vector<Check> checks;
  double before = 1;
  for (const int workers : {4, 16, 64}) {
    const double ratio = (harmonic(workers) + 1) / (slowest_mean(workers, 10) + .1);
    checks.push_back({format("m=%d", workers), {{ratio}}, Bound::above(before)});
    before = ratio;
  }
  study.claims.push_back({"Section 3.2: local updates mitigate stragglers; synchronous SGD's time grows as log m",
                          Method::closed_form, "-", checks, "time of tau=1 over tau=10, each above the one before it",
                          Evidence::by_construction});
}

void claim_bounds(Study& study) {
  const ErrorBound one{.tau = 1, .step_s = harmonic(16) + 1}, ten{.tau = 10, .step_s = slowest_mean(16, 10) + .1};
  study.claims.push_back({"Fig. 6: a long period lowers the bound sooner but to a higher floor; the curves cross",
                          Method::closed_form,
                          "crossing shown, no number",
                          {{"floor of tau=10 over that of tau=1", {{ten.floor() / one.floor()}}, Bound::above(1)},
                           {"they cross at T", {{crossing_s(one, ten)}}, Bound::above(0), 0}},
                          "eq. 13 with the constants of Fig. 6",
                          Evidence::by_construction});
  const auto best = [](double time) { return algorithms::optimal_period(1, 1, .08, 1, 1, time); };
  study.claims.push_back({"Theorem 2: the best period falls as 1/sqrt(T)",
                          Method::closed_form,
                          "eq. 14",
                          {{"tau* at T=100 over T=400", {{best(100) / best(400)}}, Bound::within(2, .001), 3},
                           {"at T=100", {{best(100)}}, Bound::within(6.25, .01)}},
                          "F_1=D=L=sigma^2=1, eta=0.08",
                          Evidence::by_construction});
}

// Learning ------------------------------------------------------------------------------------------------------------

enum class Rate { fixed, falls };

/// A figure of the paper, where allreduce and AdaComm race to a loss.
struct Race {
  const char *figure, *paper_words;
  double paper;
  double alpha;  ///< Time of an averaging over that of a step.
  int tau_0;
  Rate rate = Rate::falls;
  double momentum = 0;
  int workers = 4;
};

constexpr double kAboveSync = 1.1;

PlotLine learn(const Classification& data, const Lab& lab, const std::string& strategy, std::int64_t steps,
               const Race& race, std::uint64_t seed) {
  const double falls_at = race.rate == Rate::falls ? static_cast<double>(lab.steps(4000)) : 1e12;
  const auto rate = [=](Version step) {
    const double at = static_cast<double>(step.value) / falls_at;
    return at < .5 ? 1 : at < .75 ? .1 : .01;
  };
  Job job = job_of(std::make_shared<Seen>(data.problem(), nullptr, rate), strategy, steps, seed,
                   [](simulate::Random&) { return 1.0; });
  averaging_takes(job, race.alpha);
  job.lr = race.momentum > 0 ? .02 : kLearningRate;
  job.momentum = race.momentum;
  return data.curve(strategy, job, lab.run(job));
}

/// What is learnt by the time that allreduce takes for 4000 steps.
class Track {
 public:
  Track(const Lab& lab, const Race& race, std::uint64_t seed)
      : lab_(lab), race_(race), seed_(seed), data_(lab, race.workers, seed), steps_(lab.steps(4000)) {}

  PlotLine sync() const { return learn(data_, lab_, "allreduce", steps_, race_, seed_); }
  PlotLine adacomm() const {
    return learn(data_, lab_,
                 format("adacomm(period=%d,interval=%.0fs,block_momentum=%.1f)", race_.tau_0, time() / 25,
                        race_.momentum > 0 ? .3 : 0),
                 steps_of(3), race_, seed_);
  }
  PlotLine fixed(int tau) const { return learn(data_, lab_, local_sgd(tau), steps_of(tau), race_, seed_); }
  /// Short runs, so that the curves are fine: time to `far`, of allreduce over that of a period of 100.
  double early(double far) const {
    return sooner(learn(data_, lab_, "allreduce", 100, race_, seed_),
                  learn(data_, lab_, local_sgd(100), 480, race_, seed_), far);
  }

 private:
  double time() const { return static_cast<double>(steps_) * (1 + race_.alpha); }
  std::int64_t steps_of(double tau) const { return static_cast<std::int64_t>(time() / (1 + race_.alpha / tau)); }

  const Lab& lab_;
  Race race_;
  std::uint64_t seed_;
  Classification data_;
  std::int64_t steps_;
};

void claim_race(Study& study, const Lab& lab, const Race& race) {
  Spread gain, floor;
  for (const std::uint64_t seed : {1, 2, 3}) {
    const Track track(lab, race, seed);
    const PlotLine sync = track.sync(), adacomm = track.adacomm();
    gain.values.push_back(sooner(sync, adacomm, kAboveSync * level(sync)));
    floor.values.push_back(level(adacomm) / level(sync));
  }
  study.claims.push_back(
      {std::string(race.figure) + ", and to the same loss",
       Method::simulation,
       race.paper_words,
       {{"times sooner", gain, Bound::speedup(race.paper)}, {"loss at the end", floor, Bound::at_most(1.05)}},
       format("a=%.1f, tau_0=%d, %s%s; to %.1f times the loss above the lowest that allreduce comes to, then the last "
              "quarter's over allreduce's",
              race.alpha, race.tau_0, race.rate == Rate::falls ? "a rate that falls" : "a fixed rate",
              race.workers == 4 ? "" : format(", %d workers", race.workers).c_str(), kAboveSync)});
}

void claim_trade_off(Study& study, const Lab& lab) {
  const Race vgg{.figure = "", .paper_words = "", .paper = 1, .alpha = 4, .tau_0 = 20, .rate = Rate::fixed};
  Spread early, floor, tuned;
  for (const std::uint64_t seed : {1, 2, 3}) {
    const Track track(lab, vgg, seed);
    const PlotLine sync = track.sync(), adacomm = track.adacomm(), quick = track.fixed(100);
    early.values.push_back(track.early(4 * level(sync)));
    floor.values.push_back(level(quick) / level(sync));
    tuned.values.push_back(sooner(track.fixed(20), adacomm, kAboveSync * level(sync)));
    if (seed == 1) study.plot.lines = {sync, quick, adacomm};
  }
  study.claims.push_back({"Fig. 9: a large period (tau=100) drops rapidly at first but ends on a higher floor",
                          Method::simulation,
                          "shown",
                          {{"times sooner at 4 times the loss that allreduce comes to", early, Bound::above(1.5)},
                           {"loss at the end over allreduce's", floor, Bound::above(1.5)}},
                          "a=4 as for VGG-16, a fixed rate; the loss is that of the mean of the workers' models, also "
                          "between averages"});
  study.claims.push_back({"Fig. 9: AdaComm strikes a better trade-off than a tuned fixed period (tau=20)",
                          Method::simulation,
                          "shown",
                          {{"times sooner", tuned, Bound::above(1)}},
                          "as in Fig. 9b; a period that never comes to the loss counts as if it did at its end"});
  const Race resnet{.figure = "", .paper_words = "", .paper = 1, .alpha = .5, .tau_0 = 5, .rate = Rate::fixed};
  Spread five, hundred;
  for (const std::uint64_t seed : {1, 2, 3}) {
    const Track track(lab, resnet, seed);
    const double sync = level(track.sync());
    five.values.push_back(level(track.fixed(5)) / sync);
    hundred.values.push_back(level(track.fixed(100)) / sync);
  }
  study.claims.push_back(
      {"Fig. 10b, 10c: where an averaging is cheap, synchronous SGD is nearly the best of the fixed "
       "periods",
       Method::simulation,
       "shown",
       {{"loss in the same time, tau=5 over tau=1", five, Bound::above(.95)}, {"tau=100", hundred, Bound::above(.95)}},
       "a=0.5 as for ResNet-50; last quarter"});
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
  study.claims.push_back(
      {"Appendix B: models are worse before they are averaged than after (tau=15)",
       Method::simulation,
       "accuracy about 10 % lower",
       {{"loss of a worker's own model over that of the mean, tau=15", fifteen, Bound::above(five.mean())},
        {"tau=50", fifty, Bound::above(fifteen.mean())}},
       "above the lowest, one step before the last averaging; each above the mean of the one before it, which begins "
       "with tau=5: " +
           five.text() + ". More than 1 it is on a convex problem always"});
}

}  // namespace

Study study_adacomm(const Lab& lab) {
  Study study{
      .name = "adacomm",
      .title =
          "Wang and Joshi, Adaptive Communication Strategies to Achieve the Best Error-Runtime Trade-off "
          "in Local-Update SGD",
      .setting =
          "Seeds 1, 2, 3; a figure of several is their mean, with the lowest and the highest. Learning: "
          "4 workers, softmax classification of made-up points (half of a worker's are of its own "
          "class), 10 classes, batch 8, learning rate 0.1 (0.02 with momentum 0.9), AdaComm's interval "
          "1/25 of the time that 4000 steps of allreduce take. A rate that falls does so to a tenth after "
          "2000 steps and again after 3000, whatever the period is by then. The text does not say which "
          "figures have a fixed rate; Fig. 9b's loss is ten times that of 9a. 0 times sooner: it never comes to it.",
      .claims = {},
      .plot_in_words = "Loss of the mean model, seed 1, a=4, a fixed rate.",
      .plot = {.title = "AdaComm: loss over time, an averaging takes 4 steps",
               .x_name = "virtual time, in steps of computing",
               .y_name = "loss above the lowest",
               .lines = {}},
      .plotted = "Fig. 9b"};
  claim_speedups(study);
  claim_runtimes(study, lab);
  claim_bounds(study);
  claim_trade_off(study, lab);
  for (const Race& race : {
           Race{"Fig. 9a: VGG-16 reaches 4e-3 in 15.5 instead of 33.5 min", "2.16", 2.16, 4, 20},
           Race{"Fig. 9b (the abstract's 3x): VGG-16 reaches 4.5e-2 in 11.5 instead of 38.0 min", "3.3", 3.3, 4, 20,
                Rate::fixed},
           Race{"Fig. 10a: ResNet-50 reaches 3e-2 in 15.0 instead of 21.5 min", "1.43", 1.43, .5, 5},
           Race{"Fig. 11b: VGG-16 with block momentum 0.3 (local momentum 0.9) in 19.0 instead of 66.7 min", "3.5", 3.5,
                4, 20, Rate::falls, .9},
           Race{"Fig. 11a: ResNet-50 with the same in 15.8 instead of 32.6 min", "2.06", 2.06, .5, 5, Rate::falls, .9},
           Race{"Fig. 12a: VGG-16 on 8 workers in 6.0 instead of 17.5 min", "2.9", 2.9, 4, 20, Rate::falls, 0, 8},
           Race{"Fig. 13a: ResNet-50 on 8 workers in 11.15 instead of 18.25 min", "1.64", 1.64, .5, 10, Rate::falls, 0,
                8},
       })
    claim_race(study, lab, race);
  claim_gap(study, lab);
  study.claims.push_back(not_tried("Table 1, Fig. 12 and 13: test accuracies within a time budget, AdaComm's the best",
                                   "92.85 of 92.75 % (VGG-16), 92.42 of 92.26 % (ResNet-50); 8 workers 92.72 of 92.52 "
                                   "%, 91.77 of 91.93 %",
                                   "CIFAR-10 on GPUs; a row of the small real networks is about accuracy after as many "
                                   "samples"));
  study.claims.push_back(not_tried("Fig. 8: an averaging of VGG-16 takes about 4 times as long as its computing", "4",
                                   "a measurement of their cluster; it is what a=4 is taken from"));
  return study;
}

}  // namespace paceline::cli::reproduce
