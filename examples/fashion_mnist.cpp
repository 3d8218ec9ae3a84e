// A small CNN on Fashion-MNIST, trained by several workers that do not wait for the slow one:
//   paceline run examples/fashion_mnist.cpp --workers 4 --slow 3:4x --compare 'allreduce,nonblocking'
// In an ordinary libtorch loop one line changes, `shared.step(loss)` instead of `optimizer.step()`, and five around it
// come: share, batches, evaluate, next and run.
#include <paceline/train.h>

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

void train(paceline::Worker& me) {  // Runs on every worker; each is a process of its own.
  Net net;
  torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  auto shared = me.share(net, optimizer);                // Everyone starts as worker 0.
  auto batches = me.batches(paceline::fashion_mnist());  // This worker's share, reshuffled every epoch.
  auto test = paceline::fashion_mnist_test();
  me.evaluate([&] { return paceline::accuracy(net, test); });  // Of the averaged model; the run ends at its target.

  while (me.next()) {
    auto [x, y] = batches.next();
    optimizer.zero_grad();
    auto loss = torch::cross_entropy_loss(net->forward(x), y);
    loss.backward();
    shared.step(loss);
  }
}

int main() {
  return paceline::run(train, {.workers = 4,
                               .strategy = "nonblocking",
                               .epochs = 8,
                               .batch = 16,
                               .accumulate = 8,  // Mini-batches an update; nonblocking has as many by itself.
                               .evaluate_every_epochs = 0.5,
                               .target = 0.88})
      .exit_code();
}
