// Learns y = 3 x0 - 2 x1 + 1 from points, and says how far it is off on others.
#include <paceline/train.h>

torch::Tensor plane(const torch::Tensor& x) { return (3 * x.select(1, 0) - 2 * x.select(1, 1) + 1).unsqueeze(1); }

void train(paceline::Worker& me) {
  torch::nn::Linear net(2, 1);
  torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(0.2));
  auto shared = me.share(net, optimizer);
  const auto others = torch::rand({200, 2}) * 2 - 1;
  me.evaluate([&] { return (net->forward(others) - plane(others)).abs().mean().item<double>(); });
  torch::manual_seed(7);  // The same points for all.
  const auto points = torch::rand({512, 2}) * 2 - 1;
  auto batches = me.batches(paceline::tensors(points, plane(points)));
  while (me.next()) {
    auto [x, y] = batches.next();
    optimizer.zero_grad();
    auto loss = torch::mse_loss(net->forward(x), y);
    loss.backward();
    shared.step(loss);
  }
}

int main() {
  return paceline::run(train,
                       {.epochs = 40, .batch = 16, .evaluate_every_epochs = 0, .metric = {"error", paceline::minimise}})
      .exit_code();
}
