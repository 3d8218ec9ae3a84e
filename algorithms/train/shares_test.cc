#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "algorithms/train/worker_main.h"
#include "paceline/train.h"
#include "runtime/base/json.h"
#include "tests/support/solo_session.h"

// Several shares in one job, steps with a closure, and what becomes of optimisers' state and of buffers, on a session
// of one worker that really flips buffers (tests/support/solo_session.h).

namespace paceline::train {
namespace {

using nlohmann::json;
using test::reset_solo_log;
using test::solo_log;
using ::testing::HasSubstr;

constexpr std::int64_t kBatch = 8;

WorkerStart start_with(const json& session, json options = json::object()) {
  options.update({{"batch", kBatch}, {"samples", 64}, {"seed", 5}, {"strategy", session.value("payload", "models")}});
  WorkerStart start;
  start.endpoint = json_text(session);
  start.options = json_text(options);
  return start;
}

struct GeneratorImpl : torch::nn::Module {
  torch::nn::Linear fc = register_module("fc", torch::nn::Linear(2, 3));
  torch::nn::BatchNorm1d norm = register_module("norm", torch::nn::BatchNorm1d(3));
  torch::Tensor forward(torch::Tensor z) { return norm(fc(z)); }
};
TORCH_MODULE(Generator);
struct DiscriminatorImpl : torch::nn::Module {
  torch::nn::Linear fc1 = register_module("fc1", torch::nn::Linear(3, 4));
  torch::nn::Linear fc2 = register_module("fc2", torch::nn::Linear(4, 1));
  torch::Tensor forward(torch::Tensor x) { return fc2(torch::tanh(fc1(x))); }
};
TORCH_MODULE(Discriminator);

/// Two models that train each other, with optimisers of different types.
struct Pair {
  Pair() {
    torch::manual_seed(3);
    g = Generator();
    d = Discriminator();
    opt_g = std::make_unique<torch::optim::Adam>(g->parameters(), torch::optim::AdamOptions(0.01));
    opt_d = std::make_unique<torch::optim::SGD>(d->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
  }
  /// One body; the steps are the caller's. Gradients of the generator's pass reach the discriminator, too.
  template <class StepD, class StepG>
  void body(const torch::Tensor& z, StepD&& step_d, StepG&& step_g) {
    opt_d->zero_grad();
    const auto fake = g->forward(z);
    auto loss_d = torch::softplus(-d->forward(z.sum() + torch::ones({kBatch, 3}))).mean() +
                  torch::softplus(d->forward(fake.detach())).mean();
    loss_d.backward();
    step_d(loss_d);
    opt_g->zero_grad();
    auto loss_g = torch::softplus(-d->forward(fake)).mean();
    loss_g.backward();
    step_g(loss_g);
  }
  Generator g{nullptr};
  Discriminator d{nullptr};
  std::unique_ptr<torch::optim::Optimizer> opt_g, opt_d;
};

void expect_equal(torch::nn::Module& a, torch::nn::Module& b, double tolerance) {
  const auto pa = a.named_parameters();
  for (const auto& item : b.named_parameters())
    EXPECT_TRUE(torch::allclose(pa[item.key()], item.value(), tolerance, tolerance)) << item.key();
  const auto ba = a.named_buffers();
  const double rounding = std::max(tolerance, 1e-5);  // Buffers travel as their changes, where gradients do.
  for (const auto& item : b.named_buffers())
    EXPECT_TRUE(torch::allclose(ba[item.key()], item.value(), rounding, rounding)) << item.key();
}

/// Trains a pair through the worker, and keeps what was drawn.
void through_worker(Pair& pair, const WorkerStart& start, std::vector<torch::Tensor>* drawn = nullptr) {
  Worker me(start);
  auto g = me.share(pair.g, *pair.opt_g);
  auto d = me.share(pair.d, *pair.opt_d);
  torch::optim::StepLR slower(*pair.opt_d, 2, 0.9);
  d.schedule(slower);
  while (me.next()) {
    const auto z = torch::randn({kBatch, 2});
    if (drawn) drawn->push_back(z);
    pair.body(
        z, [&](const auto& loss) { d.step(loss); }, [&](const auto& loss) { g.step(loss); });
  }
}

class SharesTest : public ::testing::TestWithParam<const char*> {
 protected:
  SharesTest() { reset_solo_log(); }
  bool models() const { return std::string_view(GetParam()) == "models"; }
  json session(std::int64_t updates, int bodies = 1) const {
    return {{"payload", GetParam()}, {"updates", updates}, {"bodies", bodies}, {"seed", 5}};
  }

  /// The same by hand. Models: each optimiser steps where its step stands; gradients: both at the body's end.
  void plainly(Pair& pair, const std::vector<torch::Tensor>& drawn) const {
    torch::optim::StepLR slower(*pair.opt_d, 2, 0.9);
    for (const auto& z : drawn) {
      std::vector<torch::Tensor> of_d;
      const auto step_d = [&](const auto&) {
        if (models()) pair.opt_d->step();
        for (const auto& parameter : pair.d->parameters()) of_d.push_back(parameter.grad().clone());
      };
      const auto step_g = [&](const auto&) {
        pair.opt_g->step();
        if (models()) return;
        for (std::size_t i = 0; i < of_d.size(); ++i) pair.d->parameters()[i].mutable_grad() = of_d[i];
        pair.opt_d->step();
      };
      pair.body(z, step_d, step_g);
      slower.step();
    }
  }
};

TEST_P(SharesTest, TrainExactlyAsThePlainLoopDoes) {
  Pair ours, plain;
  std::vector<torch::Tensor> drawn;
  through_worker(ours, start_with(session(12)), &drawn);
  ASSERT_EQ(drawn.size(), 12U);
  plainly(plain, drawn);
  expect_equal(*ours.g, *plain.g, 0);
  expect_equal(*ours.d, *plain.d, 0);
}

TEST_P(SharesTest, SeveralBodiesAnUpdateStepWithTheMeanOfEachSharesGradients) {
  Pair ours, plain;
  std::vector<torch::Tensor> drawn;
  through_worker(ours, start_with(session(1, 3)), &drawn);
  ASSERT_EQ(drawn.size(), 3U);
  std::vector<torch::Tensor> of_g, of_d;
  const auto add = [](std::vector<torch::Tensor>& sums, const std::vector<torch::Tensor>& parameters) {
    sums.resize(parameters.size());
    for (std::size_t i = 0; i < sums.size(); ++i)
      sums[i] = sums[i].defined() ? sums[i] + parameters[i].grad() / 3 : parameters[i].grad() / 3;
  };
  const auto step = [](auto& sums, const std::vector<torch::Tensor>& parameters, auto& optimizer) {
    for (std::size_t i = 0; i < sums.size(); ++i) parameters[i].mutable_grad() = sums[i];
    optimizer.step();
  };
  int body = 0;
  for (const auto& z : drawn) {
    const bool last = ++body == 3;
    const auto step_d = [&](const auto&) {
      add(of_d, plain.d->parameters());
      if (last && models()) step(of_d, plain.d->parameters(), *plain.opt_d);
    };
    const auto step_g = [&](const auto&) {
      add(of_g, plain.g->parameters());
      if (last) step(of_g, plain.g->parameters(), *plain.opt_g);
      if (last && !models()) step(of_d, plain.d->parameters(), *plain.opt_d);
    };
    plain.body(z, step_d, step_g);
  }
  expect_equal(*ours.g, *plain.g, 1e-5);
  expect_equal(*ours.d, *plain.d, 1e-5);
}

TEST_P(SharesTest, AWorkerRestoredFromAReplicaGoesOnAsIfNothingHadHappened) {
  for (const char* state : {"keep", "average"}) {
    if (!models() && std::string_view(state) == "average") continue;
    reset_solo_log();
    json whole = session(8);
    whole["capture_at"] = {5};
    Pair reference, rest;
    through_worker(reference, start_with(whole, {{"optimizer_state", state}}));
    const std::string replica = solo_log().captures.at(0);
    EXPECT_THAT(replica, HasSubstr("share0.norm.running_mean"));
    EXPECT_THAT(replica, HasSubstr("paceline.optimizer.share1.momentum_buffer.fc1.weight"));

    reset_solo_log();
    solo_log().replica = replica;
    json later = session(8);
    later["first_update"] = 5;
    later["restore_at"] = {5};
    through_worker(rest, start_with(later, {{"optimizer_state", state}}));
    expect_equal(*rest.g, *reference.g, 0);
    expect_equal(*rest.d, *reference.d, 0);
    EXPECT_EQ(rest.opt_d->param_groups()[0].options().get_lr(), reference.opt_d->param_groups()[0].options().get_lr());
  }
}

TEST_P(SharesTest, TheBodysLossIsTheirSumAndTheWindowHoldsThemAll) {
  Pair pair;
  Worker me(start_with(session(1)));
  auto g = me.share(pair.g, *pair.opt_g);
  auto d = me.share(pair.d, *pair.opt_d);
  ASSERT_TRUE(me.next());
  double sum = 0;
  const auto counted = [&sum](auto& shared) {
    return [&](const torch::Tensor& loss) { sum += loss.item<double>(), shared.step(loss); };
  };
  pair.body(torch::randn({kBatch, 2}), counted(d), counted(g));
  ASSERT_EQ(solo_log().steps.size(), 1U);
  EXPECT_DOUBLE_EQ(solo_log().steps[0].loss, sum);
  const std::uint64_t trainable = 9 + 6 + 16 + 5;
  EXPECT_EQ(solo_log().outer_elements, trainable);
  EXPECT_EQ(solo_log().elements, trainable + 6 + 8);  // Mean and variance of three; whether eight have a gradient.
}

TEST_P(SharesTest, EachIsSteppedOnceInABody) {
  Pair pair;
  Worker me(start_with(session(3)));
  auto g = me.share(pair.g, *pair.opt_g);
  auto d = me.share(pair.d, *pair.opt_d);
  ASSERT_TRUE(me.next());
  const auto complaint = [](auto&& use) -> std::string {
    try {
      use();
    } catch (const std::logic_error& error) {
      return error.what();
    }
    return "none";
  };
  const auto loss = [&] {
    auto value = pair.d->forward(torch::ones({1, 3})).square().sum();
    value.backward();
    return value;
  };
  g.step(loss());
  EXPECT_THAT(complaint([&] { me.next(); }), HasSubstr("share 1 (paceline::train::"));
  EXPECT_THAT(complaint([&] { me.next(); }), HasSubstr("Discriminator) was not called"));
  EXPECT_THAT(complaint([&] { me.share(pair.g, *pair.opt_g); }), HasSubstr("before the first next()"));
}

TEST_P(SharesTest, SteppingOneTwiceInABodyIsRefused) {
  Pair pair;
  Worker me(start_with(session(3)));
  auto g = me.share(pair.g, *pair.opt_g);
  auto d = me.share(pair.d, *pair.opt_d);
  ASSERT_TRUE(me.next());
  auto loss = pair.g->fc->weight.square().sum();
  loss.backward();
  g.step(loss);
  EXPECT_THROW(g.step(loss), std::logic_error);
}

TEST_P(SharesTest, ATensorInTwoSharesIsRefused) {
  Pair pair;
  pair.d->register_parameter("borrowed", pair.g->fc->weight);
  Worker me(start_with(session(1)));
  me.share(pair.g, *pair.opt_g);
  EXPECT_THROW(me.share(pair.d, *pair.opt_d), std::invalid_argument);
}

TEST_P(SharesTest, AllModelsAreInEvalModeWhileOneIsEvaluated) {
  json every = session(3);
  every["evaluate_every"] = 1;
  Pair pair;
  int evaluated = 0;
  Worker me(start_with(every));
  auto g = me.share(pair.g, *pair.opt_g);
  auto d = me.share(pair.d, *pair.opt_d);
  me.evaluate([&] {
    EXPECT_FALSE(pair.g->norm->is_training());
    EXPECT_FALSE(pair.d->is_training());
    return ++evaluated;
  });
  while (me.next()) {
    EXPECT_TRUE(pair.g->norm->is_training());
    EXPECT_TRUE(pair.d->is_training());
    pair.body(
        torch::randn({kBatch, 2}), [&](const auto& loss) { d.step(loss); }, [&](const auto& loss) { g.step(loss); });
  }
  EXPECT_EQ(evaluated, 3);
}

TEST_P(SharesTest, WhatIsLoggedBeforeTheFirstBodyIsNotLost) {
  Pair pair;
  Worker me(start_with(session(1)));
  me.log("early", 1);
  auto g = me.share(pair.g, *pair.opt_g);
  auto d = me.share(pair.d, *pair.opt_d);
  me.log("early", 2);
  ASSERT_TRUE(me.next());
  EXPECT_EQ(solo_log().logged["early"], (std::vector<double>{1, 2}));
}

INSTANTIATE_TEST_SUITE_P(Payloads, SharesTest, ::testing::Values("gradients", "models"),
                         [](const auto& payload) { return std::string(payload.param); });

/// A model with BatchNorm, its data and the plain loop.
struct Single {
  explicit Single(double momentum = 0.9) {
    torch::manual_seed(3);
    net = Generator();
    optimizer =
        std::make_unique<torch::optim::SGD>(net->parameters(), torch::optim::SGDOptions(0.1).momentum(momentum));
    data = torch::randn({kBatch, 2});
  }
  torch::Tensor loss() {
    optimizer->zero_grad();
    auto value = (net->forward(data) - data.sum(1, true)).square().mean();
    value.backward();
    return value;
  }
  void through_worker(const json& session, const json& options = json::object()) {
    Worker me(start_with(session, options));
    auto shared = me.share(net, *optimizer);
    while (me.next()) shared.step(loss());
  }
  void plainly(int times) {
    for (int i = 0; i < times; ++i) loss(), optimizer->step();
  }
  Generator net{nullptr};
  std::unique_ptr<torch::optim::Optimizer> optimizer;
  torch::Tensor data;
};

class AveragingTest : public ::testing::Test {
 protected:
  AveragingTest() { reset_solo_log(); }
  const json models{{"payload", "models"}, {"updates", 6}};
};

TEST_F(AveragingTest, AveragedStateTravelsWithTheModel) {
  Single ours, plain;
  ours.through_worker(models, {{"optimizer_state", "average"}});
  plain.plainly(6);
  expect_equal(*ours.net, *plain.net, 0);
  const std::uint64_t trainable = 9 + 6;
  EXPECT_EQ(solo_log().outer_elements, trainable);
  EXPECT_EQ(solo_log().elements, trainable + 6 + trainable + 4);  // The momentum of each.

  reset_solo_log();
  Single ours_with_adam, plain_with_adam;
  for (auto* single : {&ours_with_adam, &plain_with_adam})
    single->optimizer = std::make_unique<torch::optim::Adam>(single->net->parameters(), torch::optim::AdamOptions(0.1));
  ours_with_adam.through_worker(models, {{"optimizer_state", "average"}});
  plain_with_adam.plainly(6);
  expect_equal(*ours_with_adam.net, *plain_with_adam.net, 0);
  EXPECT_EQ(solo_log().elements, trainable + 6 + 2 * trainable + 4);
}

TEST_F(AveragingTest, AResetForgetsMomentumWhereModelsWereAveragedAndOnlyThere) {
  Single reset, without(0);
  reset.through_worker(models, {{"optimizer_state", "reset"}});
  without.plainly(6);
  expect_equal(*reset.net, *without.net, 0);

  json strategy_resets = models;
  strategy_resets["reset_momentum"] = 1;
  Single as_the_strategy, kept, with;
  as_the_strategy.through_worker(strategy_resets);
  expect_equal(*as_the_strategy.net, *without.net, 0);
  kept.through_worker(strategy_resets, {{"optimizer_state", "keep"}});
  with.plainly(6);
  expect_equal(*kept.net, *with.net, 0);

  json never_averages = models;
  never_averages["averages"] = false;
  Single untouched;
  untouched.through_worker(never_averages, {{"optimizer_state", "reset"}});
  expect_equal(*untouched.net, *with.net, 0);
}

TEST_F(AveragingTest, AStateThatCannotBeAveragedIsRefused) {
  Single single;
  single.optimizer = std::make_unique<torch::optim::LBFGS>(single.net->parameters());
  EXPECT_THROW(single.through_worker(models, {{"optimizer_state", "average"}}), std::invalid_argument);
}

TEST_F(AveragingTest, BuffersThatAreKeptStayOutOfTheWindow) {
  for (const char* payload : {"models", "gradients"}) {
    Single ours, plain;
    ours.through_worker({{"payload", payload}, {"updates", 6}}, {{"buffers", "keep"}});
    plain.plainly(6);
    expect_equal(*ours.net, *plain.net, 0);
    EXPECT_EQ(solo_log().elements, 9U + 6 + 4);
  }
}

TEST_F(AveragingTest, AnOptimizerThatEvaluatesSeveralTimesStepsWithAClosure) {
  Single single;
  single.optimizer = std::make_unique<torch::optim::LBFGS>(single.net->parameters(), torch::optim::LBFGSOptions(0.5));
  Worker me(start_with(models));
  auto shared = me.share(single.net, *single.optimizer);
  int evaluations = 0, hooks = 0;
  const StepOptions options{.before_update = [&] { ++hooks; }};
  while (me.next()) {
    shared.step(
        [&] {
          ++evaluations;
          return single.loss();
        },
        options);
  }
  ASSERT_EQ(solo_log().steps.size(), 6U);
  EXPECT_LT(solo_log().steps.back().loss, 0.9 * solo_log().steps.front().loss);
  EXPECT_GT(evaluations, 12);
  EXPECT_EQ(hooks, evaluations);
}

TEST_F(AveragingTest, AClosureIsRefusedWhereGradientsAreAveraged) {
  Single single;
  Worker me(start_with({{"payload", "gradients"}}, {{"strategy", "allreduce"}}));
  auto shared = me.share(single.net, *single.optimizer);
  ASSERT_TRUE(me.next());
  try {
    shared.step([&] { return single.loss(); });
    FAIL() << "stepped before the average";
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(error.what(), HasSubstr("has no meaning under"));
    EXPECT_THAT(error.what(), HasSubstr("local-sgd"));
  }
}

}  // namespace
}  // namespace paceline::train
