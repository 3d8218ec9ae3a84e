#pragma once

/// What the sides of a comparison share: the model, its optimiser, a random mini-batch, and which steps are timed.
#include <paceline/train.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

namespace bench {

inline constexpr long kBatch = 32;

/// nine: a line through eight features, nine numbers; small: that of examples/fashion_mnist.cpp; large: full-size
/// convolutions with pooling; tiny: one layer of 7,850 parameters.
inline torch::nn::Sequential make_net(const std::string& model) {
  using namespace torch::nn;
  if (model == "nine") return Sequential(Linear(8, 1));
  if (model == "tiny") return Sequential(Flatten(), Linear(784, 10));
  if (model == "large") {
    return Sequential(Conv2d(Conv2dOptions(1, 32, 3).padding(1)), ReLU(), MaxPool2d(2),
                      Conv2d(Conv2dOptions(32, 64, 3).padding(1)), ReLU(), MaxPool2d(2), Flatten(), Linear(3136, 128),
                      ReLU(), Linear(128, 10));
  }
  return Sequential(Conv2d(Conv2dOptions(1, 16, 5).stride(2).padding(2)), ReLU(),
                    Conv2d(Conv2dOptions(16, 32, 3).stride(2).padding(1)), ReLU(), Flatten(), Linear(1568, 256), ReLU(),
                    Linear(256, 10));
}

inline auto sgd() { return torch::optim::SGDOptions(0.1).momentum(0.9); }

/// What `nine` learns from; Fashion-MNIST is for all others.
inline paceline::Dataset dataset(const std::string& model) {
  if (model != "nine") return paceline::fashion_mnist();
  const auto x = torch::randn({4096, 8});
  return paceline::tensors(x, x.sum(1, true));
}

inline torch::Tensor loss_of(const std::string& model, const torch::Tensor& output, const torch::Tensor& target) {
  return model == "nine" ? torch::mse_loss(output, target) : torch::cross_entropy_loss(output, target);
}

/// Random mini-batches, as a loop without a runtime draws them.
class Batches {
 public:
  explicit Batches(const std::string& model) : data_(dataset(model)) {}
  std::pair<torch::Tensor, torch::Tensor> next() {
    for (auto& index : indices_) index = std::rand() % data_.size();
    auto [x, y] = data_.get(indices_);
    return {x, y};
  }

 private:
  paceline::Dataset data_;
  std::vector<std::int64_t> indices_ = std::vector<std::int64_t>(kBatch);
};

/// Times the steps after the first quarter of `steps`.
class Meter {
 public:
  explicit Meter(long steps) : quarter_(steps / 4) {}
  bool is_next_timed() const { return done_ + 1 == quarter_; }
  void step() {
    end_ = std::chrono::steady_clock::now();
    if (++done_ == quarter_) begin_ = end_;
  }
  double samples_per_s() const {
    return static_cast<double>((done_ - quarter_) * kBatch) / std::chrono::duration<double>(end_ - begin_).count();
  }

 private:
  long quarter_;
  long done_ = 0;
  std::chrono::steady_clock::time_point begin_, end_;
};

/// One process's part of a job under DistributedDataParallel over gloo, without Python; `path`: a file that they meet
/// at. Samples/s of this process. (ddp.cpp, where gloo's headers are.)
double train_with_ddp(const std::string& model, long steps, int rank, int processes, const std::string& path);

}  // namespace bench
