// A small residual network with BatchNorm on Fashion-MNIST: AdamW whose biases and norms do not decay, a warm-up, and
// clipping of what all workers' gradients come to.
//   paceline run examples/resnet.cpp --workers 4 --compare 'allreduce,local-sgd(period=4),nonblocking(batches=4)'
#include <paceline/train.h>

#include <algorithm>
#include <memory>
#include <vector>

namespace {

using torch::nn::BatchNorm2d, torch::nn::Conv2d;

Conv2d convolution(std::int64_t in, std::int64_t out, std::int64_t size, std::int64_t stride) {
  return Conv2d(torch::nn::Conv2dOptions(in, out, size).stride(stride).padding(size / 2).bias(false));
}

struct BlockImpl : torch::nn::Module {
  BlockImpl(std::int64_t in, std::int64_t out, std::int64_t stride) {
    conv1 = register_module("conv1", convolution(in, out, 3, stride));
    norm1 = register_module("norm1", BatchNorm2d(out));
    conv2 = register_module("conv2", convolution(out, out, 3, 1));
    norm2 = register_module("norm2", BatchNorm2d(out));
    if (stride > 1 || in != out) shortcut = register_module("shortcut", convolution(in, out, 1, stride));
  }

  torch::Tensor forward(const torch::Tensor& x) {
    auto y = torch::relu(norm1(conv1(x)));
    y = norm2(conv2(y));
    return torch::relu(y + (shortcut ? shortcut(x) : x));
  }

  Conv2d conv1{nullptr}, conv2{nullptr}, shortcut{nullptr};
  BatchNorm2d norm1{nullptr}, norm2{nullptr};
};
TORCH_MODULE(Block);

/// An optimiser with two groups: what multiplies inputs decays, biases and norms do not.
torch::optim::AdamW optimizer_of(torch::nn::Module& net) {
  using Options = torch::optim::AdamWOptions;
  std::vector<torch::Tensor> decaying, others;
  for (const auto& parameter : net.parameters()) (parameter.dim() > 1 ? decaying : others).push_back(parameter);
  return torch::optim::AdamW({{decaying, std::make_unique<Options>(Options(4e-3).weight_decay(5e-2))},
                              {others, std::make_unique<Options>(Options(4e-3).weight_decay(0))}});
}

/// Grows evenly to the full rate in so many steps.
class WarmUp : public torch::optim::LRScheduler {
 public:
  WarmUp(torch::optim::Optimizer& optimizer, unsigned steps)
      : LRScheduler(optimizer), full_(get_current_lrs()), steps_(steps) {}

 private:
  std::vector<double> get_lrs() override {
    std::vector<double> rates = full_;
    for (double& rate : rates) rate *= std::min(1.0, (step_count_ + 1.0) / steps_);
    return rates;
  }
  std::vector<double> full_;
  unsigned steps_;
};

void train(paceline::Worker& me) {
  torch::nn::Sequential net(convolution(1, 8, 3, 1), BatchNorm2d(8), torch::nn::ReLU(), Block(8, 16, 2),
                            Block(16, 32, 2), torch::nn::AdaptiveAvgPool2d(1), torch::nn::Flatten(),
                            torch::nn::Linear(32, 10));
  auto optimizer = optimizer_of(*net);
  WarmUp schedule(optimizer, 20);
  auto shared = me.share(net, optimizer);
  shared.schedule(schedule, paceline::per_update);
  auto batches = me.batches(paceline::fashion_mnist());
  auto test = paceline::fashion_mnist_test();
  me.evaluate([&] { return paceline::accuracy(net, test); });  // In eval mode, with the workers' mean statistics.

  while (me.next()) {
    auto [x, y] = batches.next();
    optimizer.zero_grad();
    auto loss = torch::cross_entropy_loss(net->forward(x), y);
    loss.backward();
    shared.step(
        loss, {.before_update = [&] { me.log("gradient", torch::nn::utils::clip_grad_norm_(net->parameters(), 1)); }});
  }
}

}  // namespace

int main() { return paceline::run(train, {.workers = 4, .epochs = 2, .batch = 32}).exit_code(); }
