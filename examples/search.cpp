// A hyper-parameter search: a run for each of some settings, one after the other, and the best of them.
//   paceline run examples/search.cpp --workers 2
#include <paceline/train.h>

#include <cstdio>

struct Settings {
  double rate = 0;
  int hidden = 0;
  template <class Archive>
  void serialize(Archive& archive) {  // So that it can travel to the workers.
    archive(rate, hidden);
  }
};

paceline::Trainer job(const Settings& settings) {
  using torch::nn::Linear, torch::nn::Sequential;
  return {
      .model =
          [hidden = settings.hidden] {
            return Sequential(torch::nn::Flatten(), Linear(784, hidden), torch::nn::ReLU(), Linear(hidden, 10));
          },
      .loss = [](torch::Tensor output, torch::Tensor target) { return torch::cross_entropy_loss(output, target); },
      .data = paceline::fashion_mnist(),
      .test = paceline::fashion_mnist_test(),
      .optimizer =
          [rate = settings.rate](std::vector<torch::Tensor> parameters) {
            return std::make_unique<torch::optim::SGD>(std::move(parameters), torch::optim::SGDOptions(rate));
          },
  };
}

int main() {
  Settings best;
  double accuracy = 0;
  for (const int hidden : {32, 128})
    for (const double rate : {0.01, 0.1}) {
      const Settings settings{rate, hidden};
      const auto result = paceline::run<job>(
          {.workers = 2, .strategy = "local-sgd(period=10)", .epochs = 0.5, .batch = 32, .evaluate_every_epochs = 0},
          settings);
      if (result.code != 0) return result.exit_code();
      if (result.metric <= accuracy) continue;
      best = settings;
      accuracy = result.metric;
    }
  std::printf("best: rate %g, %d hidden: %.1f %%\n", best.rate, best.hidden, 100 * accuracy);
}
