// The loop of examples/fashion_mnist.cpp in plain libtorch, without Paceline's runtime: the yardstick for one worker.
//   plain_loop BATCH STEPS   prints samples/s of the last three quarters
#include <paceline/train.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

struct NetImpl : torch::nn::Module {
  NetImpl() {
    using torch::nn::Conv2dOptions;
    conv1 = register_module("conv1", torch::nn::Conv2d(Conv2dOptions(1, 16, 5).stride(2).padding(2)));
    conv2 = register_module("conv2", torch::nn::Conv2d(Conv2dOptions(16, 32, 3).stride(2).padding(1)));
    fc1 = register_module("fc1", torch::nn::Linear(32 * 7 * 7, 256));
    fc2 = register_module("fc2", torch::nn::Linear(256, 10));
  }

  torch::Tensor forward(torch::Tensor x) {
    x = torch::relu(conv1(x));
    x = torch::relu(conv2(x)).flatten(1);
    return fc2(torch::relu(fc1(x)));
  }

  torch::nn::Conv2d conv1{nullptr}, conv2{nullptr};
  torch::nn::Linear fc1{nullptr}, fc2{nullptr};
};
TORCH_MODULE(Net);

int main(int argc, char** argv) {
  const long batch = argc > 1 ? std::atol(argv[1]) : 32;
  const long steps = argc > 2 ? std::atol(argv[2]) : 1000;
  torch::set_num_threads(1);
  torch::manual_seed(1);
  auto data = paceline::fashion_mnist();
  Net net;
  torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(0.06).momentum(0.9));
  std::vector<std::int64_t> indices(static_cast<std::size_t>(batch));
  auto begin = std::chrono::steady_clock::now();
  for (long step = 0; step < steps; ++step) {
    if (step == steps / 4) begin = std::chrono::steady_clock::now();
    for (auto& index : indices) index = std::rand() % data.size();
    auto [x, y] = data.get(indices);
    optimizer.zero_grad();
    auto loss = torch::cross_entropy_loss(net->forward(x), y);
    loss.backward();
    optimizer.step();
    (void)loss.item<double>();
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  std::printf("%.1f\n", static_cast<double>((steps - steps / 4) * batch) / took.count());
}
