// A job that trains within a second on data of its own, and goes wrong where its first argument says so.
#include <paceline/train.h>

#include <csignal>
#include <cstdio>
#include <stdexcept>
#include <string>

namespace {

enum class Mishap { none, nan, exception, segfault, norm };  // norm: no mishap, a model with BatchNorm

// Two classes that a line separates.
paceline::Dataset points() {
  torch::manual_seed(5);
  const auto x = torch::randn({2048, 8});
  return paceline::tensors(x, (x.select(1, 0) > x.select(1, 1)).to(torch::kInt64));
}

/// Each number of the model, under its tensor's name.
void log_model(paceline::Worker& me, const torch::nn::Module& net) {
  const auto log = [&me](const std::string& name, const torch::Tensor& tensor) {
    const auto numbers = tensor.detach().reshape({-1}).to(torch::kFloat64);
    for (std::int64_t k = 0; k < numbers.numel(); ++k) me.log(name, numbers[k].item<double>());
  };
  for (const auto& item : net.named_parameters()) log(item.key(), item.value());
  for (const auto& item : net.named_buffers()) log(item.key(), item.value());
}

template <Mishap mishap>
void train(paceline::Worker& me) {
  torch::nn::Sequential net(torch::nn::Linear(8, 2));
  if (mishap == Mishap::norm) net->push_back(torch::nn::BatchNorm1d(2));
  torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  auto shared = me.share(net, optimizer);
  const auto data = points();
  auto batches = me.batches(data);
  me.evaluate([&] { return paceline::accuracy(net, data); });
  while (me.next()) {
    auto [x, y] = batches.next();
    optimizer.zero_grad();
    auto loss = torch::cross_entropy_loss(net->forward(x), y);
    if (me.rank() == 1 && me.update() == 40) {
      std::fprintf(stderr, "the last line before the mishap\n");
      if (mishap == Mishap::nan) loss = loss * std::nan("");
      if (mishap == Mishap::exception) throw std::runtime_error("batch 40 is not to my taste");
      if (mishap == Mishap::segfault) std::raise(SIGSEGV);
    }
    loss.backward();
    shared.step(loss);
  }
  double buffers = 0;
  for (const auto& buffer : net->buffers()) buffers += buffer.is_floating_point() ? buffer.sum().item<double>() : 0;
  me.log("buffers", buffers);
  if (mishap == Mishap::norm && me.rank() == 0) log_model(me, *net);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mishap = argc > 1 ? argv[1] : "none";
  const auto function = mishap == "nan"         ? train<Mishap::nan>
                        : mishap == "exception" ? train<Mishap::exception>
                        : mishap == "segfault"  ? train<Mishap::segfault>
                        : mishap == "norm"      ? train<Mishap::norm>
                                                : train<Mishap::none>;
  return paceline::run(function, {.workers = 2, .epochs = 4, .batch = 32}).exit_code();
}
