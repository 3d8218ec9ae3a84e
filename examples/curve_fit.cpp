// A curve through noisy points with LBFGS, which evaluates several times a step: strategies that average models, now
// and then. (After every step, as neighbours do in d-psgd, its memory of the last steps no longer fits the model: that
// came to an error of 0.55, fifty times as much.)
//   paceline run examples/curve_fit.cpp --workers 4 --compare 'local-sgd(period=4),wagma(sync=4),slowmo(period=4)'
#include <paceline/train.h>

namespace {

constexpr std::int64_t kPoints = 2000;

struct Points {
  torch::Tensor x, y;
};

/// A damped oscillation, seen with so much noise.
Points points(double noise) {
  auto random = at::detail::createCPUGenerator(7);
  const auto x = torch::linspace(-1, 1, kPoints).unsqueeze(1);
  const auto y = torch::exp(-x) * torch::sin(6 * x);
  return {x, y + noise * torch::randn(y.sizes(), random)};
}

void train(paceline::Worker& me) {
  using torch::nn::Linear, torch::nn::Tanh;
  torch::nn::Sequential net(Linear(1, 24), Tanh(), Linear(24, 24), Tanh(), Linear(24, 1));
  torch::optim::LBFGS optimizer(net->parameters(),
                                torch::optim::LBFGSOptions(1).max_iter(10).line_search_fn("strong_wolfe"));
  auto shared = me.share(net, optimizer);

  const auto [x, y] = points(0.1);
  auto batches = me.batches(paceline::tensors(x, y));
  const auto [where, truth] = points(0);
  me.evaluate([&] { return (net->forward(where) - truth).square().mean().sqrt().item<double>(); });

  while (me.next()) {
    const auto [seen_x, seen_y] = batches.next();
    shared.step([&] {
      optimizer.zero_grad();
      auto loss = torch::mse_loss(net->forward(seen_x), seen_y);
      loss.backward();
      return loss;
    });
  }
}

}  // namespace

int main() {
  return paceline::run(train, {.workers = 4,
                               .strategy = "local-sgd(period=4)",
                               .epochs = 60,
                               .batch = 500,  // All that a worker has.
                               .evaluate_every_epochs = 20,
                               .metric = {"error", paceline::minimise}})
      .exit_code();
}
