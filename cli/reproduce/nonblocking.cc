#include <algorithm>
#include <cmath>
#include <tuple>

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
  std::vector<Check> checks;
  const double off = lab.quick() ? .1 : .03;
  for (const int workers : {2, 4, 8, 16, 32}) {
    const double ratio = 1 / (workers * harmonic(workers));
    exact.points.emplace_back(workers, ratio);
    simulated.points.emplace_back(workers, update_ratio(lab, workers, exponential(), 1));
    if (workers == 2 || workers == 32) continue;
    const Spread first = mean_of(lab, workers, exponential(), least), last = mean_of(lab, workers, exponential(), most);
    checks.push_back({format("P=%d", workers), first / last, Bound::within(ratio, off * ratio), 4});
  }
  study.plot.lines = {exact, simulated};
  study.claims.push_back({"Theorem 2: exponential times, an iteration takes 1 / (lambda P) instead of the longest of P",
                          Method::monte_carlo, "eq. 9, 10: 0.1200, 0.0460, 0.0185", checks,
                          "the ratio of both, to 3 %; eq. 10 is H_P / lambda", Evidence::by_construction});
  const Spread eight = lab.over_seeds([&](std::uint64_t seed) { return update_ratio(lab, 8, exponential(), seed); });
  study.claims.push_back({"Theorem 2 where nobody drops the mini-batch that it has begun (64 a batch, P=8)",
                          Method::simulation,
                          "0.0460",
                          {{"", eight, Bound::within(.0460, .0460 * .03), 4}},
                          "to 3 %. Who is far behind ends a mini-batch of its own when the update is long over and "
                          "misses updates, of which "
                          "then fewer workers can be the first: the theorem's immediate end is a limit"});
}

void claim_twice(Study& study, const Lab& lab) {
  const Spread exact = lab.over_seeds([&](std::uint64_t seed) {
    Job base = job_of(nothing(4), "allreduce", 20, seed, uniform(1, 2));
    for (auto& row : base.compute_s) row[seed % 4] = 1, row[(seed + 1) % 4] = 2;
    Job ours = split(base, kBatches);
    ours.strategy = format("nonblocking(batches=%d)", kBatches);
    return step_s(base, lab.run(base)) / step_s(ours, lab.run(ours));
  });
  study.claims.push_back(
      {"Theorem 1, section 6: an update takes half the time where the slowest takes twice as long as "
       "the fastest",
       Method::simulation,
       "2",
       {{"", exact, Bound::within(2, .02), 3}},
       "one worker at 1 and one at 2 in each: it follows from these times",
       Evidence::by_construction});
  std::vector<Check> checks;
  for (const int workers : {4, 8, 16}) {
    const double exactly = (2.0 * workers + 1) / (workers + 2);
    const Spread ratio =
        lab.over_seeds([&](std::uint64_t seed) { return 1 / update_ratio(lab, workers, uniform(1, 2), seed); });
    checks.push_back({format("P=%d", workers), ratio, Bound::within(exactly, .03 * exactly)});
  }
  study.claims.push_back({"Theorem 1 where times are uniform between 1 and 2", Method::simulation, "up to 2", checks,
                          "E X_(P:P) / E X_(1:P) = (2 P + 1) / (P + 2), to 3 %, is below 2 for any finite P",
                          Evidence::by_construction});
}

void claim_data(Study& study, const Lab& lab) {
  const Draw extremes = [](simulate::Random& random) { return random.uniform() < .5 ? 1.0 : 2.0; };
  const Spread even = mean_of(lab, 8, uniform(1, 2), share_used), wild = mean_of(lab, 8, exponential(), share_used),
               halves = mean_of(lab, 8, extremes, share_used);
  study.claims.push_back(
      {"Corollary 1: an iteration trains on B Y X_(1:P) of P B samples (P=8)",
       Method::monte_carlo,
       "eq. 16",
       {{"uniform on [1, 2]", even, Bound::below(1), 3},
        {"1 or 2", halves, Bound::below(1), 3},
        {"exponential", wild, Bound::below(even.least()), 3}},
       "the price of an early end: an update is over less data, a third of it under exponential times",
       Evidence::by_construction});
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
      {"Theorem 5: throughput is Y X_(P:P) / P times that of a synchronous iteration; half of the workers at 1, half "
       "at "
       "2",
       Method::simulation,
       "1.5",
       {{"", {{ratio}}, Bound::within(throughput_ratio({1, 1, 2, 2}), .01), 3}},
       "no randomness, so no seeds",
       Evidence::by_construction});
}

// Learning ------------------------------------------------------------------------------------------------------------

/// Times of 8 workers for a whole batch.
struct Times {
  const char* in_words;
  double share_used;  ///< Of the nominal data, under nonblocking.
  Draw draw;
  bool one_slow;  ///< One random worker at 2, the others as drawn.
};

Job timed(const Classification& data, const std::string& strategy, std::int64_t steps, int batches, const Times& times,
          std::uint64_t seed) {
  Job job = job_of(data.problem(), strategy, steps, seed, times.draw);
  for (std::int64_t t = 0; times.one_slow && t < steps; ++t) {
    simulate::Random random(seed, simulate::Use::stragglers, {t});
    job.compute_s[static_cast<std::size_t>(t)][static_cast<std::size_t>(random.below(8))] = 2;
  }
  job.lr = kLearningRate;
  return split(std::move(job), batches);
}

struct Figures {
  Spread final, early;  ///< Times sooner than the base at 1.1 times and at twice the loss that the base comes to.
  Spread loss, time;    ///< After as many updates, over the base's.
  Spread data_loss, data_time;  ///< After as much data.
};

Figures learn(const Lab& lab, const std::string& base, const Times& times) {
  const std::int64_t steps = lab.steps(3000), more = std::lround(static_cast<double>(steps) / times.share_used);
  const std::string ours = "nonblocking(" + base + ",batches=8)";
  Figures figures;
  for (const std::uint64_t seed : {1, 2, 3}) {
    const Classification data(lab, 8, seed);
    const auto curve = [&](const std::string& strategy, std::int64_t count, int batches) {
      const Job job = timed(data, strategy, count, batches, times, seed);
      return data.curve(strategy, job, lab.run(job));
    };
    const PlotLine all = curve(base, steps, 1), first = curve(ours, steps, 8), longer = curve(ours, more, 8);
    const auto add = [&](Spread& spread, double figure) { spread.values.push_back(figure); };
    add(figures.final, sooner(all, longer, 1.1 * level(all)));
    add(figures.early, sooner(all, longer, 2 * level(all)));
    add(figures.loss, level(first) / level(all));
    add(figures.time, first.points.back().first / all.points.back().first);
    add(figures.data_loss, level(longer) / level(all));
    add(figures.data_time, longer.points.back().first / all.points.back().first);
  }
  return figures;
}

void claim_batch_learning(Study& study, const Lab& lab) {
  const Times uneven{"times uniform on [1, 2]", .767, uniform(1, 2), false};
  const Times best{"one random worker at 2, the others at 1", 7.5 / 8, uniform(1, 1), true};
  for (const auto& [name, base, paper] :
       {std::tuple{"D-PSGD", "matcha(8-node,budget=1)", "0.928 of 0.925 and 0.792 of 0.783"},
        {"MATCHA", "matcha(8-node,budget=0.5)", "0.935 of 0.931 and 0.791 of 0.794"}}) {
    for (const Times& times : {best, uneven}) {
      const Figures found = learn(lab, base, times);
      study.claims.push_back(
          {format("Abstract, section 6: non-blocking %s takes up to 2x less time to the same training loss; %s", name,
                  times.in_words),
           Method::simulation,
           "up to 2",
           {{"sooner at 1.1 times the base's loss", found.final, Bound::speedup(2)},
            {"at twice it", found.early, Bound::speedup(2)}},
           format("8 workers on the 8-node graph; losses above the lowest, the base's in its last quarter. An update "
                  "is over %.2f of the data. Its "
                  "gradients weigh n/N, as a lower learning rate does: a lower floor, which shows in the first figure",
                  times.share_used)});
      if (times.one_slow) continue;
      study.claims.push_back(
          {format("Table 1: non-blocking %s is as accurate", name),
           Method::simulation,
           paper,
           {{"loss after as many updates", found.loss, Bound::at_most(1.05)},
            {"their time", found.time, Bound::below(1)},
            {"loss after as much data", found.data_loss, Bound::at_most(1.05)},
            {"its time", found.data_time, Bound::below(1)}},
           format("%s; loss above the lowest, last quarter, and time, over the base's. Gradients that "
                  "weigh n/N end on a lower floor",
                  times.in_words)});
    }
  }
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
      {"Fig. 2: without rotating the data the model is worse",
       Method::simulation,
       "shown",
       {{"loss above the lowest over that with rotation", without, Bound::above(1.1)}},
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
               .lines = {}},
      .plotted = "Theorem 2:"};
  claim_theorem_2(study, lab);
  claim_twice(study, lab);
  claim_data(study, lab);
  claim_batch_learning(study, lab);
  claim_rotation(study, lab);
  study.claims.push_back(not_tried("Fig. 3, 4, table 1: test accuracies on CIFAR-10 and CIFAR-100",
                                   "0.928 of 0.925, 0.935 of 0.931; 0.792 of 0.783, 0.791 of 0.794",
                                   "GPUs; two rows of the small real networks are about accuracy and time to it"));
  return study;
}

}  // namespace paceline::cli::reproduce
