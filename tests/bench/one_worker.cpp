// What the runtime costs one worker: one loop, run by plain libtorch and as a job of one worker (figures.py plain).
//   one_worker plain MODEL STEPS                  prints samples/s of the last three quarters
//   paceline run one_worker -- job MODEL STEPS    the same as the metric `steady_samples_per_s`
// MODEL: small (that of examples/fashion_mnist.cpp), large (full-size convolutions with pooling)
#include <paceline/train.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

constexpr long kBatch = 32;
std::string model = "small";
long steps = 1000;

torch::nn::Sequential make_net() {
  using namespace torch::nn;
  if (model == "large") {
    return Sequential(Conv2d(Conv2dOptions(1, 32, 3).padding(1)), ReLU(), MaxPool2d(2),
                      Conv2d(Conv2dOptions(32, 64, 3).padding(1)), ReLU(), MaxPool2d(2), Flatten(), Linear(3136, 128),
                      ReLU(), Linear(128, 10));
  }
  return Sequential(Conv2d(Conv2dOptions(1, 16, 5).stride(2).padding(2)), ReLU(),
                    Conv2d(Conv2dOptions(16, 32, 3).stride(2).padding(1)), ReLU(), Flatten(), Linear(1568, 256), ReLU(),
                    Linear(256, 10));
}

auto sgd() { return torch::optim::SGDOptions(0.1).momentum(0.9); }

/// Counts the steps after the first quarter.
class Meter {
 public:
  void step() {
    if (++done_ == steps / 4) begin_ = std::chrono::steady_clock::now();
    if (done_ == steps) end_ = std::chrono::steady_clock::now();
  }
  double samples_per_s() const {
    return static_cast<double>((steps - steps / 4) * kBatch) / std::chrono::duration<double>(end_ - begin_).count();
  }

 private:
  long done_ = 0;
  std::chrono::steady_clock::time_point begin_, end_;
};

void train(paceline::Worker& me) {
  auto net = make_net();
  torch::optim::SGD optimizer(net->parameters(), sgd());
  auto shared = me.share(net, optimizer);
  auto batches = me.batches(paceline::fashion_mnist());
  Meter meter;
  while (me.next()) {
    auto [x, y] = batches.next();
    optimizer.zero_grad();
    auto loss = torch::cross_entropy_loss(net->forward(x), y);
    loss.backward();
    shared.step(loss);
    meter.step();
  }
  me.log("steady_samples_per_s", meter.samples_per_s());
}

void train_plain() {
  torch::set_num_threads(1);
  torch::manual_seed(1);
  auto data = paceline::fashion_mnist();
  auto net = make_net();
  torch::optim::SGD optimizer(net->parameters(), sgd());
  std::vector<std::int64_t> indices(kBatch);
  Meter meter;
  for (long step = 0; step < steps; ++step) {
    for (auto& index : indices) index = std::rand() % data.size();
    auto [x, y] = data.get(indices);
    optimizer.zero_grad();
    auto loss = torch::cross_entropy_loss(net->forward(x), y);
    loss.backward();
    optimizer.step();
    (void)loss.item<double>();  // So does every loop that prints its loss; ours looks whether it is a number.
    meter.step();
  }
  std::printf("%.1f\n", meter.samples_per_s());
}

// Workers never run main: they get the arguments here, as glibc hands them to constructors.
__attribute__((constructor)) void read_arguments(int argc, char** argv) {
  if (argc < 4) return;
  model = argv[2];
  steps = std::atol(argv[3]);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4 || steps < 4) {
    std::fprintf(stderr, "usage: one_worker plain|job small|large STEPS\n");
    return 2;
  }
  if (std::string(argv[1]) == "plain") {
    train_plain();
    return 0;
  }
  const double epochs = static_cast<double>(steps * kBatch) / 60000;
  return paceline::run(train, {.workers = 1, .epochs = epochs, .batch = kBatch, .evaluate_every_epochs = 0})
      .exit_code();
}
