// Three actors, and tensors that go from one to the next: images are read, blurred, and told apart by which class's
// mean they are nearest to. While one batch is told apart, the next is blurred and the one after that is read. On what
// they made of the images workers then train a small network, which should be right more often.
//   paceline run examples/pipeline.cpp
#include <paceline.h>
#include <paceline/train.h>

#include <cstdio>
#include <utility>
#include <vector>

namespace {

using Labelled = std::pair<torch::Tensor, torch::Tensor>;  // Images [n, 1, 28, 28], their classes [n].

class Source {
 public:
  Labelled trained(std::int64_t first, std::int64_t count) const {
    return labelled(paceline::fashion_mnist(), first, count);
  }
  Labelled tested(std::int64_t first, std::int64_t count) const { return labelled(test_, first, count); }

 private:
  static Labelled labelled(const paceline::Dataset& data, std::int64_t first, std::int64_t count) {
    const auto batch = data.slice(first, count);
    return {batch.data, batch.target};
  }
  paceline::Dataset test_ = paceline::fashion_mnist_test();
};

/// Blurs, and takes every second pixel: images [n, 1, 14, 14].
class Blur {
 public:
  Labelled apply(const Labelled& sharp) const {
    torch::NoGradGuard no_grad;
    return {torch::avg_pool2d(sharp.first, 3, 2, 1), sharp.second};
  }
};

class NearestMean {
 public:
  void learn(const Labelled& images) {
    for (std::int64_t each = 0; each < 10; ++each)
      means_.push_back(images.first.index({images.second == each}).mean(0));
  }
  std::int64_t right(const Labelled& images) const {
    const auto distances = torch::cdist(images.first.flatten(1), torch::stack(means_).flatten(1));
    return (distances.argmin(1) == images.second).sum().item<std::int64_t>();
  }

 private:
  std::vector<torch::Tensor> means_;
};

/// Tensors are arguments as any others: each worker has a copy.
void train(paceline::Worker& me, const Labelled& shown, const Labelled& tests) {
  using torch::nn::Linear;
  torch::nn::Sequential net(torch::nn::Flatten(), Linear(14 * 14, 64), torch::nn::ReLU(), Linear(64, 10));
  torch::optim::SGD sgd(net->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  auto shared = me.share(net, sgd);
  const auto test = paceline::tensors(tests.first, tests.second);
  me.evaluate([&] { return paceline::accuracy(net, test); });
  auto batches = me.batches(paceline::tensors(shown.first, shown.second));
  while (me.next()) {
    auto [x, y] = batches.next();
    sgd.zero_grad();
    auto loss = torch::cross_entropy_loss(net->forward(x), y);
    loss.backward();
    shared.step(loss);
  }
}

}  // namespace

int main() {
  constexpr std::int64_t kBatch = 1000, kBatches = 10;
  const auto source = paceline::create<Source>({.name = "source"});
  const auto blur = paceline::create<Blur>({.name = "blur"});
  const auto classifier = paceline::create<NearestMean>({.name = "classifier"});

  // A future stands for its result: it goes from actor to actor, and nothing waits here.
  const auto shown = blur.call(&Blur::apply, source.call(&Source::trained, 0, 5000));
  classifier.call(&NearestMean::learn, shown);
  std::vector<paceline::Future<std::int64_t>> answers;
  std::vector<paceline::Future<Labelled>> tests;
  for (std::int64_t k = 0; k < kBatches; ++k) {
    tests.push_back(blur.call(&Blur::apply, source.call(&Source::tested, k * kBatch, kBatch)));
    answers.push_back(classifier.call(&NearestMean::right, tests.back()));
  }
  std::int64_t right = 0;
  for (const auto& answer : answers) right += answer.get();
  std::printf("right: %lld of %lld\n", static_cast<long long>(right), static_cast<long long>(kBatch * kBatches));
  std::fflush(stdout);  // Before what the run prints.

  return paceline::run(train, {.workers = 2, .epochs = 2, .batch = 32}, shown.get(), tests.front().get()).exit_code();
}
