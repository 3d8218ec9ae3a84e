#include "paceline/trainer.h"

namespace paceline {

void Trainer::train(Worker& me) const {
  const Model net = model();
  const auto step_optimizer = optimizer(net.module()->parameters());
  auto shared = me.share(net.module(), *step_optimizer);
  std::unique_ptr<torch::optim::LRScheduler> scheduler;
  if (schedule) {
    scheduler = schedule(*step_optimizer);
    shared.schedule(*scheduler, advance);
  }
  auto batches = me.batches(data);
  me.evaluate([&] {
    if (metric) return metric(net);
    return detail::accuracy([&](torch::Tensor x) { return net.forward(x); }, test, 500);
  });
  StepOptions options;
  if (clip_norm > 0) {
    options.before_update = [&] { torch::nn::utils::clip_grad_norm_(net.module()->parameters(), clip_norm); };
  }
  while (me.next()) {
    const auto [x, y] = batches.next();
    step_optimizer->zero_grad();
    const auto value = loss(net.forward(x), y);
    value.backward();
    shared.step(value, options);
  }
}

}  // namespace paceline
