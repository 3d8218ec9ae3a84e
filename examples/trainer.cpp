// A multi-layer perceptron on Fashion-MNIST with paceline::Trainer: the loop is written already.
//   paceline run examples/trainer.cpp --workers 2
#include <paceline/train.h>

paceline::Trainer job() {  // Every worker calls it: the struct describes the job, it does not travel.
  using torch::nn::Linear, torch::nn::Sequential;
  return {
      .model = [] { return Sequential(torch::nn::Flatten(), Linear(784, 128), torch::nn::ReLU(), Linear(128, 10)); },
      .loss = [](torch::Tensor output, torch::Tensor target) { return torch::cross_entropy_loss(output, target); },
      .data = paceline::fashion_mnist(),
      .test = paceline::fashion_mnist_test(),
      .optimizer =
          [](std::vector<torch::Tensor> parameters) {
            return std::make_unique<torch::optim::Adam>(std::move(parameters), torch::optim::AdamOptions(1e-3));
          },
      .schedule =
          [](torch::optim::Optimizer& optimizer) { return std::make_unique<torch::optim::StepLR>(optimizer, 1, 0.5); },
      .advance = paceline::Advance::per_epoch,
      .clip_norm = 5,
  };
}

int main() {
  return paceline::run<job>({.workers = 2, .strategy = "allreduce", .epochs = 2, .batch = 32, .target = 0.86})
      .exit_code();
}
