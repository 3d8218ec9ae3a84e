// What a run gives back: its figures, its checkpoints, and a second run that goes on from the best of them.
//   paceline run examples/results.cpp
#include <paceline/train.h>

#include <cstdio>
#include <stdexcept>

namespace {

torch::nn::Sequential new_net() {
  return torch::nn::Sequential(torch::nn::Flatten(), torch::nn::Linear(784, 32), torch::nn::ReLU(),
                               torch::nn::Linear(32, 10));
}

void train(paceline::Worker& me) {
  auto net = new_net();
  torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
  auto shared = me.share(net, optimizer);
  auto batches = me.batches(paceline::fashion_mnist(), {.prefetch = true});
  const auto test = paceline::fashion_mnist_test();
  me.evaluate([&] { return paceline::accuracy(net, test); });
  std::int64_t seen = 0;
  me.state(seen);  // In checkpoints, too: a run that goes on has it.
  const auto start = shared.snapshot();
  while (me.next()) {
    auto [x, y] = batches.next();
    optimizer.zero_grad();
    const auto loss = torch::cross_entropy_loss(net->forward(x), y);
    loss.backward();
    shared.step(loss);
    seen += me.batch();
    if (me.rank() == 0 && me.epoch() >= 100) me.stop("that is enough");
  }
  const auto moved = net->named_parameters()["1.weight"] - start["1.weight"];
  me.log("moved", moved.norm().item<double>());
  me.log("share", static_cast<double>(seen) / static_cast<double>(seen * me.workers()));
}

}  // namespace

int main() {
  paceline::RunOptions options{.workers = 2,
                               .strategy = "local-sgd(period=10)",
                               .epochs = 0.3,
                               .evaluate_every_epochs = 0.1,
                               .checkpoint_every_s = 60,
                               .optimizer_state = "average",
                               .buffers = "average",
                               .keep_checkpoints = 2,
                               .seed = 7};
  const paceline::RunResult first = paceline::run(train, options);
  if (first.code != 0) return first.exit_code();
  std::printf("%lld updates, %lld samples in %.1f s, see %s\n", static_cast<long long>(first.updates),
              static_cast<long long>(first.samples), first.train_s, first.run_directory.c_str());
  for (const paceline::Evaluation& one : first.evaluations)
    std::printf("update %lld, %.1f s: %.1f %%, loss %.2f\n", static_cast<long long>(one.update), one.clock_s,
                100 * one.value, one.loss);
  for (const paceline::TrainingLoss& loss : first.losses)
    if (loss.clock_s > first.train_s / 2) {
      std::printf("loss half way, at update %lld: %.2f\n", static_cast<long long>(loss.update), loss.value);
      break;
    }
  if (!first.lost.empty()) std::printf("%zu workers were lost\n", first.lost.size());

  auto net = new_net();
  const paceline::LoadResult loaded = paceline::load(net, first.best_checkpoint, {.strict = false, .prefix = ""});
  if (!loaded.missing.empty() || !loaded.unexpected.empty()) throw std::logic_error("it is the same model");
  auto tensors = paceline::load_tensors(first.best_checkpoint);
  paceline::save_tensors({{"weight", tensors.at("1.weight")}}, "first_layer.safetensors");
  paceline::save(net, "net.safetensors");

  options.epochs = 0.5;
  options.resume = first.best_checkpoint;
  options.target = first.best->value + 0.001;
  const auto second = paceline::run(train, options);
  if (second.time_to_target_s) std::printf("better after %.1f s more\n", *second.time_to_target_s);
  std::printf("%s\n", second.json.c_str());
  return second.exit_code();
}
