#include <paceline/train.h>

void train(paceline::Worker& me) {
  torch::nn::Linear net(2, 1);
  torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(0.1));
  auto shared = me.share(net, optimizer);
  while (me.next()) {
    optimizer.zero_grad();
    auto loss = net->forward(torch::ones({1, 2})).sum();
    loss.backward();
    shared.step(loss);
  }
}

int main() { return paceline::run(train, {.workers = 1, .samples = 320}).exit_code(); }
