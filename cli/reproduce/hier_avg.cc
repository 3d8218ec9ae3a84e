#include <algorithm>
#include <cmath>

#include "cli/reproduce/formulas.h"
#include "cli/reproduce/lab.h"

namespace paceline::cli::reproduce {
namespace {

using simulate::Job;

double one(simulate::Random&) { return 1; }

std::string hier_avg(int k1, int k2, int group) { return format("hier-avg(k1=%d,k2=%d,group=%d)", k1, k2, group); }

PlotLine learn(const Lab& lab, const Classification& data, const std::string& strategy, std::uint64_t seed) {
  Job job = job_of(data.problem(), strategy, lab.steps(960), seed, one);
  job.lr = kLearningRate;
  return data.curve(strategy, job, lab.run(job));
}

/// Loss under one strategy over loss under another, in the last quarter.
Spread ratio(const Lab& lab, int workers, const std::string& strategy, const std::string& base) {
  return lab.over_seeds([&](std::uint64_t seed) {
    const Classification data(lab, workers, seed);
    return level(learn(lab, data, strategy, seed)) / level(learn(lab, data, base, seed));
  });
}

void claim_bound(Study& study) {
  const double narrow = hierarchy_bound(4, 32, 4), wide = hierarchy_bound(8, 32, 4), small = hierarchy_bound(4, 32, 2);
  study.claims.push_back(
      {"Theorem 3.4: the bound grows with K1 and falls with S", Method::closed_form, "h(K1, K2, S)",
       format("K2=32: h(4, 4)=%.0f < h(8, 4)=%.0f; h(4, 4)=%.0f < h(4, 2)=%.0f", narrow, wide, narrow, small),
       narrow < wide && narrow < small,
       "h = (K2 - K1)(4 K2 + K1 - 3) / S + (K1 - 1)(3 K2 + K1 - 2), K1 and S in brackets"});
}

void claim_reductions(Study& study, const Lab& lab) {
  const Classification data(lab, 8, 1);
  const auto model = [&](const std::string& strategy) {
    Job job = job_of(data.problem(), strategy, 48, 1, one);
    return lab.run(job).summary.model;
  };
  double most = 0;
  for (const auto& [hier, plain] : {std::pair{hier_avg(1, 1, 4), std::string("allreduce")},
                                    {hier_avg(8, 8, 4), "k-avg(period=8)"},
                                    {hier_avg(4, 8, 1), "k-avg(period=8)"},
                                    {hier_avg(4, 8, 8), "k-avg(period=4)"}}) {
    const auto a = model(hier), b = model(plain);
    for (std::size_t k = 0; k < a.size(); ++k) most = std::max(most, std::abs(a[k] - b[k]));
  }
  study.claims.push_back({"Section 3: K1=K2=1 is synchronous SGD; K1=K2 or S=1 is K-AVG (and S=P is K-AVG of K1)",
                          Method::simulation, "equal", most < 1e-12 ? "equal" : format("differ by up to %.2g", most),
                          most < 1e-12, "models after 48 steps of 8 workers, to 1e-12; seed 1"});
}

void claim_order(Study& study, const Lab& lab, const std::string& text, const std::string& better,
                 const std::string& worse) {
  const Spread found = ratio(lab, 16, better, worse);
  study.claims.push_back(
      {text, Method::simulation, "below 1", found.text(3), found.most() < 1,
       "loss above the lowest, last quarter, of " + better + " over that of " + worse + ", 16 workers"});
}

void claim_sparse(Study& study, const Lab& lab) {
  const Spread sixteen = ratio(lab, 32, hier_avg(4, 16, 4), hier_avg(4, 8, 4)),
               long_one = ratio(lab, 32, hier_avg(4, 32, 4), hier_avg(4, 8, 4));
  study.claims.push_back(
      {"Section 4.1: K2 of 16 or 32 instead of 8 does not slow training down (P=32, K1=4, S=4)", Method::simulation,
       "similar accuracies; in one network of four the longest is best",
       "K2=16: " + sixteen.text() + ", K2=32: " + long_one.text(), sixteen.most() < 1.1 && long_one.most() < 1.1,
       "loss above the lowest over that of K2=8; held to 1.1. With as few as a quarter of the global averages"});
}

void claim_table_1(Study& study, const Lab& lab, int workers, int k, const std::string& hier, int k2,
                   const std::string& paper) {
  const Spread found = ratio(lab, workers, hier, format("k-avg(period=%d)", k));
  const std::int64_t steps = lab.steps(960);
  study.claims.push_back(
      {format("Table 1: %s is no worse than K-AVG with K=%d, with half of the global averages (P=%d)", hier.c_str(), k,
              workers),
       Method::simulation, paper,
       found.text() + format(" of K-AVG's loss; %d instead of %d global averages", static_cast<int>(steps / k2),
                             static_cast<int>(steps / k)),
       found.most() < 1.1, "loss above the lowest, last quarter; held to 1.1"});
}

void claim_time(Study& study) {
  // A model takes 0.1 s between hosts and a tenth of that inside; 32 workers, 8 a host.
  const double inside = ring_s(8, .01), between = inside + ring_s(4, .1);
  const double k_avg = between / 4, hier = (inside + between) / 8;
  study.claims.push_back(
      {"Section 4.3: with half of the global averages it can reduce the time of communication", Method::closed_form,
       "not measured", format("%.1f instead of %.1f ms a step (%.2f)", 1e3 * hier, 1e3 * k_avg, hier / k_avg),
       hier < k_avg,
       "K2=8, K1=4, S=8 against K=4; 4 hosts of 8 workers, rings, a model takes 10 ms inside a host and "
       "100 ms between two"});
}

void plot(Study& study, const Lab& lab) {
  const Classification data(lab, 32, 1);
  for (const auto& [strategy, every] : {std::pair{std::string("k-avg(period=4)"), 4},
                                        {std::string("k-avg(period=8)"), 8},
                                        {hier_avg(4, 8, 8), 8},
                                        {hier_avg(1, 8, 4), 8}}) {
    PlotLine line = learn(lab, data, strategy, 1);
    for (auto& [at, loss] : line.points) at /= every;
    study.plot.lines.push_back(std::move(line));
  }
}

}  // namespace

Study study_hier_avg(const Lab& lab) {
  Study study{.name = "hier-avg",
              .title = "Zhou and Cong, A Distributed Hierarchical SGD Algorithm with Sparse Global Reduction",
              .setting =
                  "Seeds 1, 2, 3; a figure of several is their mean, with the lowest and the highest. Learning: 960 "
                  "steps of softmax classification of made-up points (half of a worker's are of its own class), 10 "
                  "classes, batch 8, learning rate 0.1. The problem is convex: where the paper's deep networks "
                  "gain from the noise of sparse averages, this one cannot.",
              .claims = {},
              .plot_in_words = "Loss of the mean model over global averages, 32 workers, seed 1.",
              .plot = {.title = "Hier-AVG: loss over global averages",
                       .x_name = "global averages",
                       .y_name = "loss above the lowest",
                       .lines = {}}};
  claim_bound(study);
  claim_reductions(study, lab);
  claim_order(study, lab, "Fig. 3: K1=4 has a lower training loss than K1=8 (K2=32, S=4)", hier_avg(4, 32, 4),
              hier_avg(8, 32, 4));
  claim_order(study, lab, "Fig. 4: S=4 has a lower training loss than S=2 (K2=32, K1=4)", hier_avg(4, 32, 4),
              hier_avg(4, 32, 2));
  claim_sparse(study, lab);
  claim_table_1(study, lab, 16, 32, hier_avg(4, 64, 4), 64, "94.11 % of 94.00 %");
  claim_table_1(study, lab, 32, 4, hier_avg(4, 8, 8), 8, "93.90 % of 93.70 %");
  claim_table_1(study, lab, 64, 4, hier_avg(1, 8, 4), 8, "93.17 % of 92.50 %");
  claim_time(study);
  plot(study, lab);
  return study;
}

}  // namespace paceline::cli::reproduce
