#include <algorithm>
#include <cmath>

#include "cli/reproduce/formulas.h"
#include "cli/reproduce/lab.h"

namespace paceline::cli::reproduce {
namespace {

using simulate::Job;

constexpr int kBatches = 64;  ///< Mini-batches of a batch: enough for the one in flight not to matter much.

/// What each of `workers` would take for a whole batch, under the seed.
std::vector<double> drawn(int workers, const Draw& time, std::uint64_t seed, std::int64_t index) {
  std::vector<double> times;
  for (int i = 0; i < workers; ++i) {
    simulate::Random random(seed, simulate::Use::compute, {i, index});
    times.push_back(time(random));
  }
  return times;
}

Spread mean_of(const Lab& lab, int workers, const Draw& time,
               const std::function<double(const std::vector<double>&)>& figure) {
  const std::int64_t count = lab.steps(20'000);
  return lab.over_seeds([&](std::uint64_t seed) {
    double sum = 0;
    for (std::int64_t k = 0; k < count; ++k) sum += figure(drawn(workers, time, seed, k));
    return sum / static_cast<double>(count);
  });
}

double least(const std::vector<double>& times) { return *std::min_element(times.begin(), times.end()); }
double most(const std::vector<double>& times) { return *std::max_element(times.begin(), times.end()); }

/// The job with its times divided among the mini-batches of a batch.
Job split(Job job, int batches) {
  for (auto& row : job.compute_s) {
    for (double& time : row) time = std::max(1e-9, time / batches);
  }
  return job;
}

/// Time of an update that the first to finish ends, over that of one that waits for all.
double update_ratio(const Lab& lab, int workers, const Draw& time, std::uint64_t seed) {
  const std::int64_t steps = lab.steps(500);
  const Job base = job_of(nothing(workers), "allreduce", steps, seed, time);
  const Job ours =
      split(job_of(nothing(workers), format("nonblocking(batches=%d)", kBatches), steps, seed, time), kBatches);
  return step_s(ours, lab.run(ours)) / step_s(base, lab.run(base));
}

void claim_theorem_2(Study& study, const Lab& lab) {
  PlotLine exact{"theorem 2: 1 / (P H_P)", {}}, simulated{"simulated, 64 mini-batches, seed 1", {}};
  bool holds = true;
  std::string ours;
  for (const int workers : {2, 4, 8, 16, 32}) {
    exact.points.emplace_back(workers, 1 / (workers * harmonic(workers)));
    simulated.points.emplace_back(workers, update_ratio(lab, workers, exponential(), 1));
    if (workers == 2 || workers == 32) continue;
    const Spread first = mean_of(lab, workers, exponential(), least), last = mean_of(lab, workers, exponential(), most);
    const double ratio = first.mean() / last.mean();
    ours += format("%sP=%d: %.4f and %.4f, ratio %.4f (exactly %.4f)", ours.empty() ? "" : "; ", workers, first.mean(),
                   last.mean(), ratio, exact.points.back().second);
    holds = holds && std::abs(ratio / exact.points.back().second - 1) < (lab.quick() ? .1 : .03);
  }
  study.plot.lines = {exact, simulated};
  study.claims.push_back({"Theorem 2: exponential times, an iteration takes 1 / (lambda P) instead of the longest of P",
                          Method::monte_carlo, "eq. 9, 10", ours, holds,
                          "eq. 10 is H_P / lambda; means of three seeds"});
  const Spread eight = lab.over_seeds([&](std::uint64_t seed) { return update_ratio(lab, 8, exponential(), seed); });
  study.claims.push_back(
      {"The same where nobody drops the mini-batch that it has begun (64 a batch, P=8)", Method::simulation, "0.0460",
       eight.text(4), std::abs(eight.mean() / .0460 - 1) < .1,
       "who is far behind ends a mini-batch of its own when the update is long over and misses updates, of which then "
       "fewer workers can be the first: the theorem's immediate end is a limit"});
}

void claim_twice(Study& study, const Lab& lab) {
  const Spread exact = lab.over_seeds([&](std::uint64_t seed) {
    Job base = job_of(nothing(4), "allreduce", 20, seed, uniform(1, 2));
    for (auto& row : base.compute_s) row[seed % 4] = 1, row[(seed + 1) % 4] = 2;
    Job ours = split(base, kBatches);
    ours.strategy = format("nonblocking(batches=%d)", kBatches);
    return step_s(base, lab.run(base)) / step_s(ours, lab.run(ours));
  });
  study.claims.push_back({"Section 6: up to 2x where the slowest takes twice as long as the fastest",
                          Method::simulation, "2", exact.text(3), std::abs(exact.mean() - 2) < .02,
                          "in time an update, one worker at 1 and one at 2 in each"});
  std::string ours;
  bool holds = true;
  for (const int workers : {4, 8, 16}) {
    const double exactly = (2.0 * workers + 1) / (workers + 2);
    const Spread ratio =
        lab.over_seeds([&](std::uint64_t seed) { return 1 / update_ratio(lab, workers, uniform(1, 2), seed); });
    ours += format("%sP=%d: ", ours.empty() ? "" : "; ", workers) + ratio.text() + format(", exactly %.2f", exactly);
    holds = holds && std::abs(ratio.mean() / exactly - 1) < .05;
  }
  study.claims.push_back({"The same where times are uniform between 1 and 2", Method::simulation, "up to 2", ours,
                          holds, "only up to: E X_(P:P) / E X_(1:P) is below 2 for any finite P"});
}

void claim_data(Study& study, const Lab& lab) {
  const Draw extremes = [](simulate::Random& random) { return random.uniform() < .5 ? 1.0 : 2.0; };
  const Spread even = mean_of(lab, 8, uniform(1, 2), share_used), wild = mean_of(lab, 8, exponential(), share_used),
               halves = mean_of(lab, 8, extremes, share_used);
  study.claims.push_back(
      {"Corollary 1: an iteration trains on B Y X_(1:P) of P B samples (P=8)", Method::monte_carlo, "eq. 16",
       "uniform on [1, 2]: " + even.text(3) + "; 1 or 2: " + halves.text(3) + "; exponential: " + wild.text(3),
       wild.mean() < even.mean() && even.mean() < 1,
       "the price of an early end: an update is over less data, a third of it under exponential times"});
  const Job base = [] {
    Job job;
    job.problem = nothing(4);
    job.start = {{0}};
    job.strategy = "allreduce";
    job.steps = 50;
    job.compute_s = {{1, 1, 2, 2}};
    return job;
  }();
  Job ours = split(base, 4);
  ours.strategy = "nonblocking(batches=4)";
  const auto outcome = lab.run(ours);
  double batches = 0;
  for (const auto& row : outcome.rows) batches += static_cast<double>(row.batches_done) / 4;
  const double ratio = batches / seconds(outcome.summary.time) / (4.0 * 50 / seconds(lab.run(base).summary.time));
  study.claims.push_back(
      {"Theorem 5: throughput is Y X_(P:P) / P times that of a synchronous iteration; half of the "
       "workers at 1, half at 2",
       Method::simulation, "1.5", format("%.3f", ratio), std::abs(ratio - throughput_ratio({1, 1, 2, 2})) < .01,
       "no randomness, so no seeds"});
}

// Learning ------------------------------------------------------------------------------------------------------------

struct Learned {
  double loss, time;
};

Learned learn(const Lab& lab, const Classification& data, const std::string& strategy, std::int64_t steps, int batches,
              std::uint64_t seed) {
  Job job = split(job_of(data.problem(), strategy, steps, seed, uniform(1, 2)), batches);
  job.lr = kLearningRate;
  const auto outcome = lab.run(job);
  return {level(data.curve(strategy, job, outcome)), seconds(outcome.summary.time)};
}

void claim_accuracy(Study& study, const Lab& lab, const std::string& name, const std::string& base,
                    const std::string& paper) {
  constexpr double kUsed = .767;  // Of the nominal data (corollary 1).
  const std::int64_t steps = lab.steps(3000), more = std::lround(static_cast<double>(steps) / kUsed);
  Spread loss, time, loss_same_data, time_same_data;
  for (const std::uint64_t seed : {1, 2, 3}) {
    const Classification data(lab, 8, seed);
    const std::string ours = "nonblocking(" + base + ",batches=8)";
    const Learned all = learn(lab, data, base, steps, 1, seed), first = learn(lab, data, ours, steps, 8, seed),
                  longer = learn(lab, data, ours, more, 8, seed);
    loss.values.push_back(first.loss / all.loss);
    time.values.push_back(first.time / all.time);
    loss_same_data.values.push_back(longer.loss / all.loss);
    time_same_data.values.push_back(longer.time / all.time);
  }
  study.claims.push_back(
      {"Table 1: non-blocking " + name + " is as accurate, in less time", Method::simulation, paper,
       "as many updates: loss " + loss.text() + ", time " + time.text() + " of the base's; as much data: " + "loss " +
           loss_same_data.text() + ", time " + time_same_data.text(),
       loss_same_data.mean() < 1.1 && time_same_data.most() < 1,
       "8 workers on the 8-node graph, times uniform on [1, 2]; loss above the lowest, last quarter; with "
       "as much data held to a mean of 1.1 in less time. An update is over 0.77 of the data, so that as "
       "many updates are less training; its gradients weigh n/N, so that it ends on a lower floor"});
}

void claim_rotation(Study& study, const Lab& lab) {
  std::vector<double> ratio;
  for (const std::uint64_t seed : {1, 2, 3}) {
    const Classification data(lab, 8, seed);
    const Draw same = [](simulate::Random&) { return 1.0; };
    const auto loss = [&](bool rotates) {
      const auto source = [=](Rank rank, Version step) {
        return rotates ? Rank{static_cast<std::int32_t>((rank.value + step.value / 16) % 8)} : rank;
      };
      const auto seen = std::make_shared<Seen>(data.problem(), source, nullptr);
      Job job = split(job_of(seen, "nonblocking(batches=8)", lab.steps(1500), seed, same), 8);
      for (auto& row : job.compute_s) row[3] *= 8;  // Worker 3 ends one mini-batch while the others end all.
      job.lr = kLearningRate;
      return level(data.curve("", job, lab.run(job)));
    };
    ratio.push_back(loss(false) / loss(true));
  }
  const Spread without{ratio};
  study.claims.push_back(
      {"Fig. 2: without rotating the data the model is worse", Method::simulation, "shown",
       "loss above the lowest " + without.text() + " times that with rotation", without.least() > 1.1,
       "one worker always 8 times slower, half of its samples of a class of its own, rotation every 16 "
       "updates (an epoch)"});
}

}  // namespace

Study study_nonblocking(const Lab& lab) {
  Study study{
      .name = "nonblocking",
      .title = "He and Dube, Accelerating Parallel Stochastic Gradient Descent via Non-blocking Mini-batches",
      .setting =
          "Seeds 1, 2, 3; a figure of several is their mean, with the lowest and the highest. A worker has "
          "one speed an update; what the first to finish ends is a batch of 64 (learning: 8) mini-batches. "
          "Learning: softmax classification of made-up points (half of a worker's are of its own class), "
          "10 classes, batch 8, learning rate 0.1. In the simulator an update's gradient of a worker is "
          "one draw, however many of its mini-batches counted.",
      .claims = {},
      .plot_in_words = "Time of an update that the first worker ends, over that of one that waits for the last.",
      .plot = {.title = "Non-blocking SGD: time an update, exponential times",
               .x_name = "workers",
               .y_name = "of the time of a synchronous update",
               .lines = {}}};
  claim_theorem_2(study, lab);
  claim_twice(study, lab);
  claim_data(study, lab);
  claim_accuracy(study, lab, "D-PSGD", "matcha(8-node,budget=1)", "0.928 of 0.925 and 0.792 of 0.783, up to 2x");
  claim_accuracy(study, lab, "MATCHA", "matcha(8-node,budget=0.5)", "0.935 of 0.931 and 0.791 of 0.794, up to 2x");
  claim_rotation(study, lab);
  return study;
}

}  // namespace paceline::cli::reproduce
