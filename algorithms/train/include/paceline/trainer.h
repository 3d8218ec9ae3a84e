#pragma once

#include <functional>
#include <memory>
#include <string>
#include <torch/torch.h>
#include <vector>

#include "paceline/data.h"
#include "paceline/run.h"
#include "paceline/worker.h"

namespace paceline {

/// A whole training job as one struct; written with nothing but the public API (trainer.cc).
/// A job's workers are processes of their own, so the struct is made by a function that each of them calls:
///   paceline::Trainer job() { return {.model = ..., .loss = ..., .data = ..., .test = ..., .optimizer = ...}; }
///   int main() { return paceline::run<job>({.workers = 4, .epochs = 3, .target = 0.88}).exit_code(); }
struct Trainer {
  std::function<torch::nn::AnyModule()> model;                                     ///< `[] { return torch::nn::AnyModule(Net()); }`
  std::function<torch::Tensor(torch::Tensor output, torch::Tensor target)> loss;
  Dataset data;
  Dataset test;
  std::function<std::unique_ptr<torch::optim::Optimizer>(std::vector<torch::Tensor>)> optimizer;
  /// Optional learning rate schedule.
  std::function<std::unique_ptr<torch::optim::LRScheduler>(torch::optim::Optimizer&)> schedule = nullptr;
  /// Optional: largest norm of the gradient that is applied; 0: not clipped.
  double clip_norm = 0;
  /// Optional: the metric of the averaged model; without it, accuracy on `test`.
  std::function<double(torch::nn::AnyModule& model)> metric = nullptr;

  /// Runs the job's loop on this worker.
  void train(Worker& me) const;
};

/// Runs the job that `make` describes.
template <Trainer (*make)()>
RunResult run(const RunOptions& options = {}) {
  return run([](Worker& me) { make().train(me); }, options);
}

}  // namespace paceline
