// A language model of letters: text that is read from a file as it is needed, one letter at a time.
//   paceline run examples/text.cpp --compare 'allreduce,nonblocking(batches=2)'
//   paceline run examples/text.cpp -- novel.txt
#include <paceline.h>
#include <paceline/train.h>

#include <cmath>
#include <string>

namespace {

struct NetImpl : torch::nn::Module {
  torch::Tensor forward(const torch::Tensor& letters) {
    return out(std::get<0>(gru(embedding(letters)))).transpose(1, 2);  // [n, 256, length]
  }
  torch::nn::Embedding embedding = register_module("embedding", torch::nn::Embedding(256, 32));
  torch::nn::GRU gru = register_module("gru", torch::nn::GRU(torch::nn::GRUOptions(32, 64).batch_first(true)));
  torch::nn::Linear out = register_module("out", torch::nn::Linear(64, 256));
};
TORCH_MODULE(Net);

void train(paceline::Worker& me) {
  const auto given = paceline::arguments();
  const std::string path = given.empty() ? "/usr/share/common-licenses/GPL-3" : given.front();
  const auto text = paceline::tokens(path, {.length = 64, .bytes = 1});
  Net net;
  torch::optim::AdamW optimizer(net->parameters(), torch::optim::AdamWOptions(5e-3));
  auto shared = me.share(net, optimizer);
  auto batches = me.batches(text);
  me.evaluate([&] {
    const auto all = text.slice(0, text.size());
    return std::exp(torch::cross_entropy_loss(net->forward(all.data), all.target).item<double>());
  });
  while (me.next()) {
    auto [x, y] = batches.next();
    optimizer.zero_grad();
    const auto loss = torch::cross_entropy_loss(net->forward(x), y);
    loss.backward();
    torch::nn::utils::clip_grad_norm_(net->parameters(), 1.0);
    shared.step(loss);
  }
}

}  // namespace

int main() {
  const paceline::Metric perplexity{
      .name = "perplexity", .direction = paceline::Direction::minimise, .unit = "letters"};
  return paceline::run(train,
                       {.workers = 2, .epochs = 12, .batch = 16, .evaluate_every_epochs = 4, .metric = perplexity})
      .exit_code();
}
