#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "tests/sim/outcomes.h"
#include "tests/sim/random_jobs.h"

// Nothing that workers give is lost or counted twice: push-sum's weights and models, eager-SGD's gradients.

namespace paceline::sim {
namespace {

using simulate::Job;

/// A strongly connected digraph whose nodes have different numbers of neighbours, so that weights leave 1.
class DigraphFile {
 public:
  DigraphFile(int workers, std::mt19937& dice)
      : path_(std::filesystem::temp_directory_path() / ("paceline_invariants_" + std::to_string(getpid()))) {
    std::ofstream out(path_);
    for (int i = 0; i < workers; ++i) {
      for (int hop = 1; hop < workers; ++hop) {
        if (hop == 1 || dice() % 3 == 0) out << i << ' ' << (i + hop) % workers << '\n';
      }
    }
  }
  ~DigraphFile() { std::filesystem::remove(path_); }
  DigraphFile(const DigraphFile&) = delete;
  DigraphFile& operator=(const DigraphFile&) = delete;
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

TEST(PushSum, WeightsSumToTheWorkersAndWeighedModelsToTheirStartAtEveryStep) {
  int uneven = 0;
  for (unsigned seed = 0; seed < jobs(150); ++seed) {
    std::mt19937 dice(seed);
    Job job = random_pair("sgp", seed).job;
    const auto workers = static_cast<int>(job.workers.size());
    if (workers < 2) continue;
    const DigraphFile graph(workers, dice);
    job.strategy = "sgp(graph=" + graph.path() + ")";
    job.lr = 0;
    SCOPED_TRACE(describe(job));
    const auto outcome = simulate::simulate(job);
    ASSERT_TRUE(outcome) << outcome.error().text;
    for (const auto& [step, rows] : by_step(*outcome)) {
      double weights = 0;
      Vector mass(job.start[0].size(), 0.0);
      for (const Row& row : rows) {
        ASSERT_GT(row.weight, 0);
        uneven += std::abs(row.weight - 1) > 1e-3 ? 1 : 0;
        weights += row.weight;
        for (std::size_t k = 0; k < mass.size(); ++k) mass[k] += row.weight * row.model[k] / workers;
      }
      ASSERT_NEAR(weights, workers, 1e-9) << "after step " << step.value;
      expect_near(mass, mean(job.start), "after step " + to_string(step));
    }
    expect_near(outcome->summary.model, mean(job.start), "at the end");
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(uneven, 100) << "the graphs are too regular to say anything";
}

/// Gradients that do not depend on the model: what was given can be read off the models.
class Constant final : public simulate::Problem {
 public:
  explicit Constant(std::int32_t workers) : workers_(workers) {}
  std::int32_t workers() const override { return workers_; }
  std::size_t dimensions() const override { return 1; }
  std::pair<Vector, double> gradient(Rank worker, Version step, const Vector&) const override {
    return {{number(worker, step)}, 0};
  }
  double objective(const Vector&) const override { return 0; }
  double gradient_ns() const override { return 1; }
  static double number(Rank worker, Version step) {
    return 1 + worker.value * 3 + static_cast<double>(step.value * step.value % 7);
  }

 private:
  std::int32_t workers_;
};

TEST(EagerSgd, NoGradientIsLostThatAccumulatesAndSomeAreThatAreDropped) {
  // Synchronised after every other step, a worker is late by one version at most, and then merges with that very one.
  int dropped = 0;
  for (unsigned seed = 0; seed < jobs(150); ++seed) {
    Job job = random_pair("eager_sgd", seed).job;
    const auto workers = static_cast<std::int32_t>(job.workers.size());
    job.problem = std::make_shared<Constant>(workers);
    job.workers.clear();
    job.start = {{0.0}};
    job.momentum = 0;
    job.nesterov = false;
    job.lr = 1;
    job.steps += job.steps % 2;
    double produced = 0;
    for (Rank i{0}; i.value < workers; ++i.value) {
      for (Version t{0}; t.value < job.steps; t = t.next()) produced += Constant::number(i, t) / workers;
    }
    const auto end = [&](const std::string& parameters) {
      job.strategy = "eager-sgd(" + parameters + ",sync=2)";
      const auto outcome = simulate::simulate(job);
      EXPECT_TRUE(outcome) << outcome.error().text;
      return outcome ? -outcome->summary.model[0] : 0;
    };
    for (const char* const start : {"solo", "majority", "quorum=1"}) {
      ASSERT_NEAR(end(start), produced, tolerance(produced)) << start << ", seed " << seed << " " << describe(job);
      const double rest = end(std::string(start) + ",late=drop");
      ASSERT_LE(rest, produced + tolerance(produced)) << describe(job);
      dropped += rest < produced - 0.01 ? 1 : 0;
    }
  }
  EXPECT_GT(dropped, 5);
}

}  // namespace
}  // namespace paceline::sim
