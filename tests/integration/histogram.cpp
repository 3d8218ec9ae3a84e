// A model that is a histogram: each sample has a number of it to itself in every epoch, which only a step with it makes
// another than 0. What is another than 0 in the end has been used, and what became of all others the ledger has to say
// (ledger_test.py). Arguments: samples, epochs, the folder for what the workers end with, milliseconds of a mini-batch.
#include <paceline.h>
#include <paceline/train.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

namespace {

struct HistogramImpl : torch::nn::Module {
  explicit HistogramImpl(std::int64_t size)
      : counts(register_parameter("counts", torch::zeros({size}, torch::kFloat64))) {}
  torch::Tensor counts;
};
TORCH_MODULE(Histogram);

void train(paceline::Worker& me, std::int64_t samples, std::int64_t epochs, const std::string& output,
           std::int64_t milliseconds) {
  Histogram net(samples * (epochs + 1));
  torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(1.0));
  auto shared = me.share(net, optimizer);
  auto batches = me.batches(paceline::tensors(torch::arange(samples), torch::arange(samples)));
  me.evaluate([] { return 0.0; });
  while (me.next()) {
    const auto batch = batches.next();
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    optimizer.zero_grad();
    const auto where = me.epoch() * samples + batch.data;
    const auto loss = -net->counts.index_select(0, where).sum();
    loss.backward();
    shared.step(loss);
  }
  std::ofstream file(output + "/" + std::to_string(me.rank()));
  const auto counts = net->counts.detach();
  for (std::int64_t i = 0; i < counts.size(0); ++i) file << counts[i].item<double>() << '\n';
}

}  // namespace

int main(int argc, char** argv) {
  const auto number = [&](int at) { return argc > at ? std::atoll(argv[at]) : 0; };
  return paceline::run(train, {.epochs = static_cast<double>(number(2)), .evaluate_every_epochs = 0.5}, number(1),
                       number(2), std::string(argc > 3 ? argv[3] : "."), number(4))
      .exit_code();
}
