#pragma once

#include <torch/torch.h>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "paceline/data.h"
#include "paceline/run.h"
#include "paceline/worker.h"

namespace paceline {

/// Any module with a `forward(Tensor) -> Tensor`: what `Trainer::model` returns. Made from a module holder (`Net()`,
/// `torch::nn::Sequential(...)`) or a shared pointer to a module.
class Model {
 public:
  template <class Net>
  Model(const torch::nn::ModuleHolder<Net>& net) : Model(net.ptr()) {}  // NOLINT(google-explicit-constructor)
  template <class Net>
  Model(std::shared_ptr<Net> net)  // NOLINT(google-explicit-constructor)
      : module_(net), forward_([net](torch::Tensor x) -> torch::Tensor { return net->forward(std::move(x)); }) {}

  /// What the module's forward gives.
  torch::Tensor forward(torch::Tensor x) const { return forward_(std::move(x)); }
  /// For its parameters, names and the like.
  const std::shared_ptr<torch::nn::Module>& module() const { return module_; }

 private:
  std::shared_ptr<torch::nn::Module> module_;
  std::function<torch::Tensor(torch::Tensor)> forward_;
};

/// A whole training job as one struct; written with nothing but the public API (trainer.cc).
/// A job's workers are processes of their own, so the struct is made by a function that each of them calls:
///   paceline::Trainer job() { return {.model = ..., .loss = ..., .data = ..., .test = ..., .optimizer = ...}; }
///   int main() { return paceline::run<job>({.workers = 4, .epochs = 3, .target = 0.88}).exit_code(); }
struct Trainer {
  std::function<Model()> model;  ///< `[] { return Net(); }`
  std::function<torch::Tensor(torch::Tensor output, torch::Tensor target)> loss;
  Dataset data;
  Dataset test;
  std::function<std::unique_ptr<torch::optim::Optimizer>(std::vector<torch::Tensor>)> optimizer;
  /// Optional learning rate schedule.
  std::function<std::unique_ptr<torch::optim::LRScheduler>(torch::optim::Optimizer&)> schedule = nullptr;
  Advance advance = Advance::per_update;  ///< What the schedule counts.
  /// Optional: largest norm of the gradient that is applied; 0: not clipped.
  double clip_norm = 0;
  /// Optional: the metric of the averaged model; without it, accuracy on `test`.
  std::function<double(const Model& model)> metric = nullptr;

  /// Runs the job's loop on this worker.
  void train(Worker& me) const;
};

/// Runs the job that `make(arguments...)` describes; for arguments see the other run().
template <auto make, class... Args>
requires(std::is_same_v<std::invoke_result_t<decltype(make), Args...>, Trainer>) RunResult
    run(const RunOptions& options = {}, Args&&... arguments) {
  return run([](Worker& me, const actors::travels_t<Args>&... values) { make(values...).train(me); }, options,
             std::forward<Args>(arguments)...);
}

}  // namespace paceline
