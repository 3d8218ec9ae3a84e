#include <algorithm>
#include <cmath>
#include <cstdio>
#include <stdexcept>
#include <utility>

#include "algorithms/train/core.h"

// What a step does: takes a share's gradients or steps its optimiser, and, with the last share of the body, averages.

namespace paceline::train {
namespace {

double seconds(std::chrono::steady_clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

/// An optimiser's learning rates times a factor, for as long as it lives.
class ScaledRates {
 public:
  ScaledRates(torch::optim::Optimizer& optimizer, double factor)
      : optimizer_(optimizer), own_(factor == 1 ? std::vector<double>() : learning_rates(optimizer)) {
    auto rates = own_;
    for (double& rate : rates) rate *= factor;
    set_learning_rates(optimizer_, rates);
  }
  ~ScaledRates() { set_learning_rates(optimizer_, own_); }
  ScaledRates(const ScaledRates&) = delete;
  ScaledRates& operator=(const ScaledRates&) = delete;

 private:
  torch::optim::Optimizer& optimizer_;
  const std::vector<double> own_;
};

}  // namespace

void Core::require_body(const char* what) const {
  if (!in_body_)
    throw std::logic_error(
        std::string(what) +
        " was called outside the loop, or after the body's step: call it once after each next() that returned true");
}

double Core::checked_loss(const Share& share, const torch::Tensor& loss) {
  const double value = loss.item<double>();
  if (std::isfinite(value)) return value;
  const std::string path = settings_.checkpoint_path();
  std::FILE* const file = path.empty() ? nullptr : std::fopen(path.c_str(), "rb");
  if (file) std::fclose(file);
  const std::string of = shares_.size() > 1 ? " of " + share.name : "";
  const std::string text = "loss" + of + " is " + (std::isnan(value) ? "nan" : "infinite") + " at worker " +
                           std::to_string(start_.rank) + ", update " + std::to_string(lease_.update) +
                           (file ? "; the last checkpoint is " + path : "; there is no checkpoint yet") +
                           "; a smaller learning rate may help";
  fail_job(text);
  throw Stopped(text);
}

Core::Share& Core::begin_step(std::size_t number) {
  require_body("step");
  Share& share = shares_[number];
  if (share.stepped)
    throw std::logic_error("step: " + share.name + " was stepped twice in one body; every share is once");
  parameters_.check_in_place();
  require_own_steps("step", share);
  return share;
}

/// Whether it was the last share of the body.
bool Core::end_step(Share& share, const torch::Tensor& loss) {
  share.loss = checked_loss(share, loss);
  share.stepped = true;
  in_body_ = !std::all_of(shares_.begin(), shares_.end(), [](const Share& s) { return s.stepped; });
  return !in_body_;
}

/// Of the body. The learning rate is that of the first share's first group.
paceline_stats Core::stats() const {
  double loss = 0;
  for (const auto& share : shares_) loss += share.loss;
  return {loss, drawn_ > 0 ? drawn_ : settings_.options.batch,
          shares_.front().optimizer->param_groups().front().options().get_lr()};
}

void Core::step(std::size_t number, const torch::Tensor& loss, const StepOptions& options) {
  Share& share = begin_step(number);
  const bool last = end_step(share, loss);
  if (lease_.payload == PACELINE_MODELS) {
    step_model(number, options);
    if (last) publish_model();
    return;
  }
  share.options = options;
  if (shares_.size() > 1) parameters_.add_gradients_to(number, gradients_, /*first=*/true);
  if (last) step_gradients();
}

void Core::step(std::size_t number, const LossClosure& closure, const StepOptions& options) {
  Share& share = begin_step(number);
  if (lease_.payload != PACELINE_MODELS)
    throw std::invalid_argument("step with a closure has no meaning under " + settings_.options.strategy +
                                ", which averages gradients before the optimiser steps: use local-sgd, wagma or "
                                "another strategy that averages models");
  if (info_.bodies > 1)
    throw std::invalid_argument("step with a closure evaluates as often as the optimiser likes: use accumulate 1");
  const auto loss = [&] {
    const ScaledRates scaled(*share.optimizer, rate_factor());
    return share.optimizer->step([&] {
      auto value = closure();
      if (options.before_update) options.before_update();
      return value;
    });
  }();
  mark_step(number);
  if (end_step(share, loss)) publish_model();
}

void Core::apply(std::size_t number, const StepOptions& options) {
  try {
    if (options.before_update) options.before_update();
    const ScaledRates scaled(*shares_[number].optimizer, rate_factor());
    shares_[number].optimizer->step();
  } catch (...) {
    parameters_.take_back_gradients(number);
    throw;
  }
  parameters_.take_back_gradients(number);
  mark_step(number);
}

/// What learning rates are multiplied by.
double Core::rate_factor() const {
  const auto& scaling = settings_.options.lr_scaling;
  const double share = static_cast<double>(present_) / std::max(1, info_.workers);
  return info_.lr_factor * (scaling == "linear" ? share : scaling == "sqrt" ? std::sqrt(share) : 1);
}

void Core::note_present() {
  if (const auto members = paceline_session_members(session_.get()); members > 0)
    present_ = static_cast<std::int32_t>(members);
}

void Core::sleep_as_slow(Clock::time_point computed) {
  if (!straggler_->is_slow()) return;
  const double seconds_to_sleep = straggler_->after(seconds(computed - body_began_ + applied_));
  applied_ = {};
  paceline_session_sleep(session_.get(), seconds_to_sleep);
}

void Core::step_gradients() {
  const auto whole = stats();
  void* const taken = shares_.size() > 1 ? gradients_.data_ptr() : nullptr;
  // Sums over mini-batches are divided by their number, changes of buffers are not to be.
  const auto& pieces = parameters_.gradients(info_.bodies, taken);
  sleep_as_slow(Clock::now());
  if (paceline_session_step_gradients(session_.get(), pieces.data(), pieces.size(), &whole) != PACELINE_APPLY) return;
  note_present();
  reached_ = lease_.update + 1;
  const auto began = Clock::now();
  void* const averaged = paceline_session_result(session_.get()).data;
  if (averaged) parameters_.apply_buffers(averaged);
  for (std::size_t i = 0; i < shares_.size(); ++i) {
    if (void* const flat = averaged ? averaged : taken) parameters_.lend_gradients(i, flat);
    apply(i, std::exchange(shares_[i].options, {}));
  }
  applied_ = Clock::now() - began;
  if (lease_.payload != PACELINE_BOTH) return;
  follow_model();
  average_model(whole);
}

/// The optimiser steps, at the update's last body.
void Core::step_model(std::size_t number, const StepOptions& options) {
  if (info_.bodies > 1) {
    parameters_.add_gradients_to(number, gradients_, /*first=*/summed_bodies_ == 0);
    if (summed_bodies_ + 1 < info_.bodies) return;
    parameters_.divide(number, gradients_, static_cast<double>(info_.bodies));
    parameters_.lend_gradients(number, gradients_.data_ptr());
  }
  apply(number, options);
}

void Core::publish_model() {
  paceline_stats whole = stats();
  if (info_.bodies > 1) {
    const bool first = summed_bodies_ == 0;
    summed_loss_ = (first ? 0 : summed_loss_) + whole.loss;
    summed_samples_ = (first ? 0 : summed_samples_) + whole.samples;
    if (++summed_bodies_ < info_.bodies) return sleep_as_slow(Clock::now());
    whole.loss = summed_loss_ / info_.bodies;
    whole.samples = summed_samples_;
    summed_bodies_ = 0;
  }
  sleep_as_slow(Clock::now());
  average_model(whole);
}

void Core::average_model(const paceline_stats& stats) {
  parameters_.write_converted();
  const auto outcome = paceline_session_step_model(session_.get(), &stats);
  if (outcome != PACELINE_MOVED && outcome != PACELINE_GO_ON) return;
  note_present();
  reached_ = lease_.update + 1;
  follow_model();
  if (outcome == PACELINE_MOVED && optimizer_state_ == OptimizerState::reset)
    for (const auto& share : shares_) clear_optimizer_state(*share.optimizer);
  if (optimizer_state_ != OptimizerState::keep) mark_steps();
}

}  // namespace paceline::train
