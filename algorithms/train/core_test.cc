#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <set>
#include <stop_token>

#include "actors/cancel.h"
#include "algorithms/train/dataset.h"
#include "algorithms/train/optimizer_state.h"
#include "algorithms/train/safetensors.h"
#include "algorithms/train/worker_main.h"
#include "paceline/train.h"
#include "runtime/base/json.h"
#include "runtime/base/test_directory.h"
#include "tests/support/solo_session.h"

// The adapter on a session of one worker that really flips buffers (tests/support/solo_session.h).

namespace paceline::train {
namespace {

using nlohmann::json;
using test::reset_solo_log;
using test::solo_log;
using ::testing::HasSubstr;

struct NetImpl : torch::nn::Module {
  NetImpl() {
    torch::manual_seed(3);
    fc1 = register_module("fc1", torch::nn::Linear(6, 8));
    norm = register_module("norm", torch::nn::BatchNorm1d(8));
    fc2 = register_module("fc2", torch::nn::Linear(8, 3));
  }
  torch::Tensor forward(torch::Tensor x) { return fc2(torch::relu(norm(fc1(x)))); }
  torch::nn::Linear fc1{nullptr}, fc2{nullptr};
  torch::nn::BatchNorm1d norm{nullptr};
};
TORCH_MODULE(Net);

constexpr std::int64_t kSamples = 64;
constexpr std::int64_t kBatch = 8;

Dataset problem() {
  torch::manual_seed(11);
  auto x = torch::randn({kSamples, 6});
  return tensors(x, x.narrow(1, 0, 3).argmax(1));
}

torch::Tensor loss_of(Net& net, const Batch& batch) {
  return torch::cross_entropy_loss(net->forward(batch.data), batch.target);
}

WorkerStart start_with(const json& session, json options = json::object(), int rank = 0) {
  options.update({{"batch", kBatch}, {"samples", kSamples}, {"seed", 5}});
  WorkerStart start;
  start.endpoint = json_text(session);
  start.rank = rank;
  start.options = json_text(options);
  return start;
}

/// Runs `train` as a worker does.
template <class F>
Result<void> run_as_worker(const F& train, WorkerStart start) {
  start.call = &actors::run_function_with<Worker, F, std::tuple<>>;
  start.arguments = *actors::encode_call<std::tuple<>>(train);
  return run_worker(start);
}

using MakeOptimizer = std::unique_ptr<torch::optim::Optimizer> (*)(std::vector<torch::Tensor>);
std::unique_ptr<torch::optim::Optimizer> sgd(std::vector<torch::Tensor> p) {
  return std::make_unique<torch::optim::SGD>(std::move(p),
                                             torch::optim::SGDOptions(0.1).momentum(0.9).weight_decay(1e-3));
}
std::unique_ptr<torch::optim::Optimizer> adam(std::vector<torch::Tensor> p) {
  return std::make_unique<torch::optim::Adam>(std::move(p), torch::optim::AdamOptions(0.01));
}

/// Trains through the worker; every mini-batch that was drawn is kept in `seen`.
Net through_worker(const WorkerStart& start, MakeOptimizer make, std::vector<Batch>* seen = nullptr) {
  Net net;
  auto optimizer = make(net->parameters());
  Worker me(start);
  auto shared = me.share(net, *optimizer);
  auto batches = me.batches(problem());
  while (me.next()) {
    const auto batch = batches.next();
    if (seen) seen->push_back(batch);
    optimizer->zero_grad();
    const auto loss = loss_of(net, batch);
    loss.backward();
    shared.step(loss);
  }
  return net;
}

/// The ordinary libtorch loop over the same mini-batches, `bodies` of them a step.
Net plainly(const std::vector<Batch>& batches, MakeOptimizer make, std::size_t bodies) {
  Net net;
  auto optimizer = make(net->parameters());
  for (std::size_t at = 0; at + bodies <= batches.size(); at += bodies) {
    optimizer->zero_grad();
    for (std::size_t k = 0; k < bodies; ++k) (loss_of(net, batches[at + k]) / static_cast<double>(bodies)).backward();
    optimizer->step();
  }
  return net;
}

class CoreTest : public ::testing::TestWithParam<const char*> {
 protected:
  CoreTest() { reset_solo_log(); }
  json session(std::int64_t updates, int bodies = 1) const {
    return {{"payload", GetParam()}, {"updates", updates}, {"bodies", bodies}, {"seed", 5}};
  }
};

void expect_equal(const Net& a, const Net& b, double tolerance) {
  const auto pa = a->named_parameters();
  for (const auto& item : b->named_parameters()) {
    EXPECT_TRUE(torch::allclose(pa[item.key()], item.value(), tolerance, tolerance)) << item.key();
  }
  const auto ba = a->named_buffers();
  const double rounding = std::max(tolerance, 1e-6);  // Buffers travel as their changes, where gradients do.
  for (const auto& item : b->named_buffers())
    EXPECT_TRUE(torch::allclose(ba[item.key()], item.value(), rounding, rounding)) << item.key();
}

TEST_P(CoreTest, TrainsExactlyAsThePlainLoopDoes) {
  for (const MakeOptimizer make : {&sgd, &adam}) {
    std::vector<Batch> seen;
    const Net ours = through_worker(start_with(session(20)), make, &seen);
    ASSERT_EQ(seen.size(), 20U);
    expect_equal(ours, plainly(seen, make, 1), 0);
  }
}

TEST_P(CoreTest, SeveralBodiesAnUpdateAreOneStepWithTheirMean) {
  std::vector<Batch> seen;
  const Net ours = through_worker(start_with(session(10, 4)), &sgd, &seen);
  ASSERT_EQ(seen.size(), 40U);
  expect_equal(ours, plainly(seen, &sgd, 4), 1e-5);
  std::int64_t samples = 0;
  for (const auto& step : solo_log().steps) samples += step.samples;
  EXPECT_EQ(samples, 40 * kBatch);
}

/// Gradients: an average is stepped with by as many as had a part in it; models: the next steps are of so many.
TEST_P(CoreTest, LearningRatesFollowWhoIsThere) {
  const std::vector<std::int64_t> members{4, 2, 0, 3, 3, 4, 1, 4};
  json config = session(8);
  config.update({{"workers", 4}, {"members", members}, {"lr_factor", 0.5}});
  for (const std::string scaling : {"none", "linear", "sqrt"}) {
    std::vector<Batch> seen;
    const Net ours = through_worker(start_with(config, {{"workers", 4}, {"lr_scaling", scaling}}), &sgd, &seen);
    Net plain;
    const auto optimizer = sgd(plain->parameters());
    const std::string payload = GetParam();
    std::int64_t present = 4;
    const auto take = [&](std::size_t at) { present = members[at] > 0 ? members[at] : present; };
    for (std::size_t at = 0; at < seen.size(); ++at) {
      optimizer->zero_grad();
      loss_of(plain, seen[at]).backward();
      const bool gradients = payload == "gradients" || (payload == "warm_up" && at < 2);
      if (gradients) take(at);
      const double share = static_cast<double>(present) / 4;
      set_learning_rates(*optimizer, {0.1 * 0.5 *
                                      (scaling == "linear" ? share
                                       : scaling == "sqrt" ? std::sqrt(share)
                                                           : 1)});
      optimizer->step();
      if (!gradients) take(at);
    }
    expect_equal(ours, plain, 1e-6);
    for (const auto& step : solo_log().steps) EXPECT_EQ(step.learning_rate, 0.1) << "as the script has it";
  }
}

TEST_P(CoreTest, AWorkerHearsHowManyTakePart) {
  json config = session(6);
  config.update({{"workers", 4}, {"members", {3, 3, 2, 0, 4}}});
  Net net;
  const auto optimizer = sgd(net->parameters());
  Worker me(start_with(config, {{"workers", 4}, {"vacant", {1}}}));
  auto shared = me.share(net, *optimizer);
  auto batches = me.batches(problem());
  std::vector<std::pair<std::int64_t, std::int32_t>> heard;
  me.on_view([&] { heard.emplace_back(me.update(), me.present()); });
  while (me.next()) {
    optimizer->zero_grad();
    const auto loss = loss_of(net, batches.next());
    loss.backward();
    shared.step(loss);
  }
  EXPECT_THAT(heard, ::testing::ElementsAre(std::pair(0, 3), std::pair(3, 2), std::pair(5, 4)));
  EXPECT_EQ(me.workers(), 4);
}

TEST_P(CoreTest, WhoJoinsHearsItOfWhoseStateItHas) {
  json whole = session(6);
  whole.update({{"workers", 4}, {"members", {2, 2, 2, 2, 2}}, {"capture_at", {3}}});
  through_worker(start_with(whole, {{"workers", 4}}), &sgd);
  const std::string replica = solo_log().captures.at(0);
  reset_solo_log();
  solo_log().replica = replica;
  json rest = session(6);
  rest.update({{"workers", 4}, {"first_update", 3}, {"restore_at", {3}}});
  Net net;
  const auto optimizer = sgd(net->parameters());
  Worker me(start_with(rest, {{"workers", 4}}));
  auto shared = me.share(net, *optimizer);
  auto batches = me.batches(problem());
  EXPECT_EQ(me.present(), 4) << "nothing else is known";
  ASSERT_TRUE(me.next());
  EXPECT_EQ(me.present(), 2);
}

TEST_P(CoreTest, AnEpochShowsEverySampleOnce) {
  std::vector<Batch> seen;
  through_worker(start_with(session(kSamples / kBatch)), &sgd, &seen);
  const auto all = problem().slice(0, kSamples).data;
  std::multiset<float> wanted;
  std::multiset<float> got;
  for (std::int64_t i = 0; i < kSamples; ++i) wanted.insert(all[i][0].item<float>());
  for (const auto& batch : seen) {
    for (std::int64_t i = 0; i < kBatch; ++i) got.insert(batch.data[i][0].item<float>());
  }
  EXPECT_EQ(got, wanted);
}

TEST_P(CoreTest, TheModelOutlivesItsWorker) {
  const Net net = through_worker(start_with(session(3)), &sgd);
  for (const auto& parameter : net->parameters()) EXPECT_TRUE(torch::isfinite(parameter).all().item<bool>());
}

TEST_P(CoreTest, AWorkerRestoredFromAReplicaGoesOnAsIfNothingHadHappened) {
  json whole = session(12);
  whole["capture_at"] = {6};
  const Net reference = through_worker(start_with(whole), &adam);
  ASSERT_EQ(solo_log().captures.size(), 1U);
  const std::string replica = solo_log().captures[0];

  reset_solo_log();
  solo_log().replica = replica;
  json rest = session(12);
  rest["first_update"] = 6;
  rest["restore_at"] = {6};
  expect_equal(through_worker(start_with(rest), &adam), reference, 0);
}

/// Where buffers are not their worker's own between averages, as those of models are.
class CoreInsideAnUpdateTest : public CoreTest {};

TEST_P(CoreInsideAnUpdateTest, AReplicaIsOfItsBeginning) {
  json whole = session(6, 4);
  whole["capture_at"] = {3};
  whole["capture_body"] = 2;
  const Net reference = through_worker(start_with(whole), &adam);
  const std::string replica = solo_log().captures.at(0);

  reset_solo_log();
  solo_log().replica = replica;
  json rest = session(6, 4);
  rest["first_update"] = 3;
  rest["restore_at"] = {3};
  const Net restored = through_worker(start_with(rest), &adam);
  for (const auto& item : reference->named_parameters())
    EXPECT_TRUE(torch::equal(restored->named_parameters()[item.key()], item.value())) << item.key();
  EXPECT_TRUE(torch::equal(restored->norm->running_mean, reference->norm->running_mean));
  EXPECT_TRUE(torch::equal(restored->norm->running_var, reference->norm->running_var));
}

TEST_P(CoreTest, OptimizersOfOtherTypesAreRestoredThroughTheirOwnSave) {
  struct Derived : torch::optim::SGD {
    using SGD::SGD;
  };
  const MakeOptimizer make = [](std::vector<torch::Tensor> p) -> std::unique_ptr<torch::optim::Optimizer> {
    return std::make_unique<Derived>(std::move(p), torch::optim::SGDOptions(0.1).momentum(0.9));
  };
  json whole = session(8);
  whole["capture_at"] = {4};
  const Net reference = through_worker(start_with(whole), make);
  const std::string replica = solo_log().captures.at(0);
  solo_log().replica = replica;
  json rest = session(8);
  rest["first_update"] = 4;
  rest["restore_at"] = {4};
  expect_equal(through_worker(start_with(rest), make), reference, 0);
}

/// One worker with everything that a test may want to touch.
struct Bench {
  explicit Bench(const json& session, const json& options = json::object(), int rank = 0)
      : me(start_with(session, options, rank)),
        optimizer(net->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9)) {}
  void body(Shared& shared, Batches& batches) {
    optimizer.zero_grad();
    auto loss = loss_of(net, batches.next());
    loss.backward();
    shared.step(loss);
  }
  Worker me;
  Net net;
  torch::optim::SGD optimizer;
};

TEST_P(CoreTest, ParametersThatWereMovedAreNoticed) {
  Bench bench(session(10));
  auto shared = bench.me.share(bench.net, bench.optimizer);
  auto batches = bench.me.batches(problem());
  ASSERT_TRUE(bench.me.next());
  bench.body(shared, batches);
  ASSERT_TRUE(bench.me.next());
  bench.net->fc1->weight.set_data(torch::zeros({8, 6}));
  try {
    bench.body(shared, batches);
    FAIL() << "went on with a parameter that nobody shares";
  } catch (const std::logic_error& error) {
    EXPECT_THAT(error.what(), HasSubstr("parameters moved: 'fc1.weight'"));
    EXPECT_THAT(error.what(), HasSubstr("call share after load or to"));
  }
}

TEST_P(CoreTest, FrozenParametersStayWhereTheyAre) {
  Bench bench(session(5));
  bench.net->fc1->weight.set_requires_grad(false);
  const auto before = bench.net->fc1->weight.clone();
  void* const place = bench.net->fc1->weight.data_ptr();
  auto shared = bench.me.share(bench.net, bench.optimizer);
  auto batches = bench.me.batches(problem());
  while (bench.me.next()) bench.body(shared, batches);
  EXPECT_EQ(bench.net->fc1->weight.data_ptr(), place);
  EXPECT_TRUE(torch::equal(bench.net->fc1->weight, before));
}

TEST_P(CoreTest, AParameterThatNobodyHasAGradientOfIsNotTouched) {
  Bench bench(session(3, 2));
  torch::optim::SGD without_momentum(bench.net->parameters(), torch::optim::SGDOptions(0.1).weight_decay(0.5));
  const auto before = bench.net->fc2->bias.detach().clone();
  auto shared = bench.me.share(bench.net, without_momentum);
  while (bench.me.next()) {
    without_momentum.zero_grad();
    auto loss = bench.net->fc1->weight.square().sum();
    loss.backward();
    shared.step(loss);
  }
  EXPECT_TRUE(torch::equal(bench.net->fc2->bias, before));
}

TEST_P(CoreTest, ANanLossEndsTheJobAndNamesWorkerUpdateAndCheckpoint) {
  Bench bench(session(10), {}, 2);
  auto shared = bench.me.share(bench.net, bench.optimizer);
  ASSERT_TRUE(bench.me.next());
  auto loss = bench.net->fc1->weight.sum() * std::nan("");
  loss.backward();
  EXPECT_THROW(shared.step(loss), Stopped);
  EXPECT_THAT(solo_log().fail_reason, HasSubstr("loss is nan at worker 2, update 0"));
  EXPECT_THAT(solo_log().fail_reason, HasSubstr("no checkpoint"));
  EXPECT_FALSE(bench.me.next());
}

TEST_P(CoreTest, EvaluatesInEvalModeWithoutGradientsAndPutsTheModeBack) {
  json every = session(4);
  every["evaluate_every"] = 2;
  Bench bench(every);
  bench.net->fc2->eval();
  auto shared = bench.me.share(bench.net, bench.optimizer);
  auto batches = bench.me.batches(problem());
  int calls = 0;
  bench.me.evaluate([&] {
    EXPECT_FALSE(bench.net->is_training());
    EXPECT_FALSE(bench.net->norm->is_training());
    EXPECT_FALSE(torch::GradMode::is_enabled());
    return 0.5 + ++calls;
  });
  while (bench.me.next()) {
    EXPECT_TRUE(bench.net->norm->is_training());
    EXPECT_FALSE(bench.net->fc2->is_training());
    bench.body(shared, batches);
  }
  EXPECT_EQ(solo_log().evaluated, (std::vector<double>{1.5, 2.5}));
}

TEST_P(CoreTest, TheScheduleFollowsTheJobsUpdates) {
  Bench bench(session(9, 2));
  auto shared = bench.me.share(bench.net, bench.optimizer);
  torch::optim::StepLR halve(bench.optimizer, 3, 0.5);
  shared.schedule(halve);
  auto batches = bench.me.batches(problem());
  while (bench.me.next()) bench.body(shared, batches);
  Net other;
  torch::optim::SGD optimizer(other->parameters(), torch::optim::SGDOptions(0.1));
  torch::optim::StepLR by_hand(optimizer, 3, 0.5);
  std::vector<double> wanted;  // Of the ordinary loop: one step of the schedule after each of the optimiser's.
  for (int update = 0; update < 9; ++update) {
    wanted.push_back(optimizer.param_groups()[0].options().get_lr());
    by_hand.step();
  }
  ASSERT_LT(wanted.back(), 0.1);
  for (const auto& step : solo_log().steps)
    EXPECT_DOUBLE_EQ(step.learning_rate, wanted.at(static_cast<std::size_t>(step.update))) << step.update;
}

/// Learning rates of the updates of epochs of 8 mini-batches, under a schedule that halves them with each epoch but the
/// first (libtorch's StepLR first acts at its second step).
std::vector<double> rates_by_epoch(const json& session, const std::string& replica = "") {
  reset_solo_log();
  solo_log().replica = replica;
  Bench bench(session);
  auto shared = bench.me.share(bench.net, bench.optimizer);
  torch::optim::StepLR halve(bench.optimizer, 1, 0.5);
  shared.schedule(halve, per_epoch);
  auto batches = bench.me.batches(problem());
  while (bench.me.next()) bench.body(shared, batches);
  std::vector<double> rates;
  for (const auto& step : solo_log().steps) rates.push_back(step.learning_rate / 0.1);
  return rates;
}

/// What the worker says of a loop that steps by itself: `before` shared.step, or `after` it.
std::string refused(
    const json& session, MakeOptimizer make, const std::function<void(torch::optim::Optimizer&)>& before,
    const std::function<void(torch::optim::Optimizer&)>& after = [](auto&) {}) {
  Net net;
  const auto optimizer = make(net->parameters());
  torch::optim::StepLR schedule(*optimizer, 1000, 0.5);
  Worker me(start_with(session));
  auto shared = me.share(net, *optimizer);
  shared.schedule(schedule);
  auto batches = me.batches(problem());
  try {
    while (me.next()) {
      optimizer->zero_grad();
      auto loss = loss_of(net, batches.next());
      loss.backward();
      before(*optimizer);
      shared.step(loss);
      after(*optimizer);
    }
  } catch (const std::logic_error& error) {
    return error.what();
  }
  return "";
}

TEST_P(CoreTest, AnOptimiserThatTheScriptStepsIsNoticed) {
  const auto step = [](torch::optim::Optimizer& optimizer) { optimizer.step(); };
  const auto nothing = [](torch::optim::Optimizer&) {};
  for (const MakeOptimizer make : {sgd, adam}) {
    for (const int bodies : {1, 2}) {
      EXPECT_EQ(refused(session(4, bodies), make, nothing), "");
      EXPECT_THAT(refused(session(4, bodies), make, step), ::testing::StartsWith("step: the optimiser of share 0"));
      EXPECT_THAT(refused(session(4, bodies), make, nothing, step), HasSubstr("leave out optimizer.step()"));
    }
  }
}

TEST_P(CoreTest, AScheduleThatTheScriptStepsIsNoticed) {
  Bench bench(session(4, 1));
  torch::optim::StepLR schedule(bench.optimizer, 1000, 0.5);
  auto shared = bench.me.share(bench.net, bench.optimizer);
  shared.schedule(schedule);
  auto batches = bench.me.batches(problem());
  ASSERT_TRUE(bench.me.next());
  bench.body(shared, batches);
  schedule.step();
  try {
    bench.me.next();
    FAIL() << "not noticed";
  } catch (const std::logic_error& error) {
    EXPECT_THAT(error.what(), ::testing::StartsWith("next: the schedule of share 0"));
  }
}

TEST_P(CoreTest, ALoaderTakesTheRunsBatch) {
  Bench bench(session(2, 1));
  auto shared = bench.me.share(bench.net, bench.optimizer);
  auto sampler = bench.me.sampler(kSamples);
  EXPECT_EQ(sampler.next(kBatch)->size(), std::size_t{kBatch});
  try {
    (void)sampler.next(2 * kBatch);
    FAIL() << "not noticed";
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(),
                 "sampler: the data loader takes batches of 16, but the run's batch is 8: make it with me.batch()");
  }
}

TEST_P(CoreTest, AnEvaluationThatGivesNoNumberIsSaid) {
  const double nan = std::nan("");
  auto job = session(2, 1);
  job["evaluate_every"] = 1;
  Bench bench(job);
  auto shared = bench.me.share(bench.net, bench.optimizer);
  auto batches = bench.me.batches(problem());
  bench.me.evaluate([&] { return nan; });
  while (bench.me.next()) bench.body(shared, batches);
  ASSERT_EQ(solo_log().warnings.size(), 2U);
  EXPECT_EQ(solo_log().warnings[0],
            "the evaluation at update 1 gave nan: it counts as no better, and reaches no target");
}

TEST_P(CoreTest, EarlyStoppingWithoutAMetricIsSaidOnce) {
  const auto said = [&](const json& options, bool with_metric, int rank = 0) {
    reset_solo_log();
    Worker me(start_with(session(2, 1), options, rank));
    Net net;
    const auto optimizer = sgd(net->parameters());
    auto shared = me.share(net, *optimizer);
    auto batches = me.batches(problem());
    if (with_metric) me.evaluate([] { return 0.5; });
    me.next();
    return solo_log().warnings;
  };
  EXPECT_THAT(said({{"early_stopping", 3}}, false), ::testing::ElementsAre(HasSubstr("early stopping has no effect")));
  EXPECT_THAT(said({{"early_stopping", 3}}, true), ::testing::IsEmpty());
  EXPECT_THAT(said({{"early_stopping", 0}}, false), ::testing::IsEmpty());
  EXPECT_THAT(said({{"early_stopping", 3}}, false, 1), ::testing::IsEmpty());
}

TEST_P(CoreTest, WhereItsCallIsCancelledTheJobIsStoppedOnce) {
  std::stop_source call;
  actors::set_stop_token(call.get_token());
  Bench bench(session(10, 1));
  auto shared = bench.me.share(bench.net, bench.optimizer);
  auto batches = bench.me.batches(problem());
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(bench.me.next());
    bench.body(shared, batches);
  }
  EXPECT_EQ(solo_log().stops, 0);
  call.request_stop();
  EXPECT_FALSE(bench.me.next());
  EXPECT_FALSE(bench.me.next());
  EXPECT_EQ(solo_log().stop_reason, "cancelled");
  EXPECT_EQ(solo_log().stops, 1);
  actors::set_stop_token({});
}

TEST_P(CoreTest, AScheduleMayCountEpochs) {
  std::vector<double> wanted;
  for (const double rate : {1.0, 1.0, 0.5, 0.25}) wanted.insert(wanted.end(), 8, rate);
  EXPECT_THAT(rates_by_epoch(session(32, 1)), ::testing::Pointwise(::testing::DoubleEq(), wanted));
}

TEST_P(CoreTest, AnEpochIsTheSameSamplesHoweverManyMiniBatchesAnUpdateHas) {
  const auto rates = rates_by_epoch(session(16, 2));  // 4 updates an epoch.
  constexpr double kWanted[] = {1, 1, 0.5, 0.25};
  for (const auto& step : solo_log().steps) EXPECT_DOUBLE_EQ(step.learning_rate / 0.1, kWanted[step.update / 4]);
  EXPECT_DOUBLE_EQ(rates.back(), 0.25);
}

TEST_P(CoreTest, AnEpochMayEndWithinAnUpdate) {
  Bench bench(session(6, 3));
  auto shared = bench.me.share(bench.net, bench.optimizer);
  auto batches = bench.me.batches(problem());
  std::vector<std::int64_t> epochs, wanted(18);
  for (std::size_t body = 0; body < wanted.size(); ++body) wanted[body] = static_cast<std::int64_t>(body) / 8;
  while (bench.me.next()) {
    epochs.push_back(bench.me.epoch());
    bench.body(shared, batches);
  }
  EXPECT_EQ(epochs, wanted);
}

TEST_P(CoreTest, AScheduleThatCountsEpochsGoesOnFromAReplica) {
  auto job = session(32, 1);
  job["capture_at"] = {20};
  auto wanted = rates_by_epoch(job);
  wanted.erase(wanted.begin(), wanted.begin() + 20);
  job.update({{"first_update", 20}, {"restore_at", {20}}});
  const std::string replica = solo_log().captures.at(0);
  EXPECT_THAT(rates_by_epoch(job, replica), ::testing::Pointwise(::testing::DoubleEq(), wanted));
}

/// Learning rates of the updates, under a schedule that is 1, 2, 3, 4, 2, 1, .5, .5, .5 times 0.1.
std::vector<double> scheduled(const json& session, const std::string& replica = "") {
  reset_solo_log();
  solo_log().replica = replica;
  Bench bench(session);
  auto shared = bench.me.share(bench.net, bench.optimizer);
  struct Hill : torch::optim::LRScheduler {
    using LRScheduler::LRScheduler;
    std::vector<double> get_lrs() override {
      constexpr double kFactors[] = {2, 1.5, 4.0 / 3, 0.5, 0.5, 0.5, 1, 1};
      auto rates = get_current_lrs();
      for (double& rate : rates) rate *= kFactors[step_count_];
      return rates;
    }
  } hill(bench.optimizer);
  shared.schedule(hill);
  auto batches = bench.me.batches(problem());
  while (bench.me.next()) bench.body(shared, batches);
  std::vector<double> rates;
  for (const auto& step : solo_log().steps) rates.push_back(step.learning_rate);
  return rates;
}

TEST_P(CoreTest, ADecayOfTheLearningRateWaitsAndIsMadeUpFor) {
  const auto near = [](const std::vector<double>& found, const std::vector<double>& wanted) {
    ASSERT_EQ(found.size(), wanted.size());
    for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], wanted[i], 1e-12) << i;
  };
  auto job = session(9, 1);
  near(scheduled(job), {.1, .2, .3, .4, .2, .1, .05, .05, .05});
  job["decay_from"] = 7;
  near(scheduled(job), {.1, .2, .3, .4, .4, .4, .4, .05, .05});
  job["decay_from"] = 5;
  near(scheduled(job), {.1, .2, .3, .4, .4, .1, .05, .05, .05});
  // A replica says what is held back.
  job.update({{"decay_from", 7}, {"capture_at", {5}}});
  scheduled(job);
  job.update({{"first_update", 5}, {"restore_at", {5}}});
  const std::string replica = solo_log().captures.at(0);
  near(scheduled(job, replica), {.4, .4, .05, .05});
}

TEST_P(CoreTest, ClippingSeesTheGradientThatIsApplied) {
  Bench bench(session(2, 2));
  torch::optim::SGD gentle(bench.net->parameters(), torch::optim::SGDOptions(1));
  auto shared = bench.me.share(bench.net, gentle);
  int hooks = 0;
  torch::Tensor before;
  const StepOptions clip{.before_update = [&] {
    ++hooks;
    torch::nn::utils::clip_grad_norm_(bench.net->parameters(), 1e-3);
    before = bench.net->fc1->weight.detach().clone();
  }};
  while (bench.me.next()) {
    gentle.zero_grad();
    auto loss = bench.net->fc1->weight.square().sum() * 100;
    loss.backward();
    const auto own = bench.net->fc1->weight.grad();
    shared.step(loss, clip);
    EXPECT_EQ(bench.net->fc1->weight.grad().data_ptr(), own.data_ptr());  // The caller's own gradient is back.
  }
  EXPECT_EQ(hooks, 2);
  EXPECT_NEAR((bench.net->fc1->weight - before).norm().item<double>(), 1e-3, 1e-5);
}

TEST_P(CoreTest, DropoutMasksDependOnSeedWorkerAndUpdateOnly) {
  const auto masks = [this](int rank) {
    json of_four = session(3);
    of_four["workers"] = 4;
    Bench bench(of_four, {}, rank);
    auto shared = bench.me.share(bench.net, bench.optimizer);
    auto batches = bench.me.batches(problem());
    std::vector<double> drawn;
    while (bench.me.next()) {
      drawn.push_back(torch::rand({}).item<double>());
      bench.body(shared, batches);
    }
    return drawn;
  };
  const auto first = masks(0);
  torch::rand({17});
  EXPECT_EQ(masks(0), first);  // Whatever else was drawn in between.
  EXPECT_NE(masks(1), first);
  EXPECT_EQ(std::set<double>(first.begin(), first.end()).size(), first.size());
}

TEST_P(CoreTest, UsersStateIsPartOfTheReplica) {
  json whole = session(4);
  whole["capture_at"] = {2};
  std::map<std::string, int> counts{{"seen", 41}};
  {
    Bench bench(whole);
    auto shared = bench.me.share(bench.net, bench.optimizer);
    auto batches = bench.me.batches(problem());
    bench.me.state(counts);
    while (bench.me.next()) {
      ++counts["seen"];
      bench.body(shared, batches);
    }
  }
  EXPECT_EQ(counts["seen"], 45);
  solo_log().replica = std::string(solo_log().captures.at(0));
  json rest = session(3);
  rest["restore_at"] = {0};
  Bench bench(rest);
  auto shared = bench.me.share(bench.net, bench.optimizer);
  bench.me.state(counts);
  ASSERT_TRUE(bench.me.next());
  EXPECT_EQ(counts["seen"], 43);
}

TEST_P(CoreTest, ASlowWorkerSleepsAndADelayedOneToo) {
  Bench bench(session(4), {{"slow", "0:3x"}, {"straggle", "1:250ms"}});
  auto shared = bench.me.share(bench.net, bench.optimizer);
  auto batches = bench.me.batches(problem());
  while (bench.me.next()) bench.body(shared, batches);
  EXPECT_GT(solo_log().slept_s, 4 * 0.25);
}

TEST_P(CoreTest, AJobGoesOnFromItsCheckpoint) {
  const test::TestDirectory own;
  const std::string directory = own.path;
  json first = session(6);
  first["evaluate_every"] = 6;
  through_worker(start_with(first, {{"run_directory", directory}}), &sgd);
  ASSERT_EQ(solo_log().evaluated.size(), 1U);
  const Net whole = through_worker(start_with(session(10)), &sgd);
  const Net resumed = through_worker(start_with(session(10), {{"resume", directory}}), &sgd);
  EXPECT_EQ(solo_log().started_at, 6);
  expect_equal(resumed, whole, 0);

  std::ofstream(directory + "/checkpoint.safetensors") << "not a checkpoint";
  try {
    through_worker(start_with(session(10), {{"resume", directory}}), &sgd);
    FAIL() << "resumed from garbage";
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), HasSubstr("cannot resume from " + directory));
  }
}

INSTANTIATE_TEST_SUITE_P(Payloads, CoreTest, ::testing::Values("gradients", "models", "both", "warm_up"),
                         [](const auto& payload) { return std::string(payload.param); });
INSTANTIATE_TEST_SUITE_P(Payloads, CoreInsideAnUpdateTest, ::testing::Values("gradients", "both"),
                         [](const auto& payload) { return std::string(payload.param); });

class ShareTest : public ::testing::Test {
 protected:
  ShareTest() { reset_solo_log(); }
  template <class Use>
  static void expect_refused(Use&& use, const std::string& why) {
    try {
      use();
      FAIL() << "was not refused: " << why;
    } catch (const std::invalid_argument& error) {
      EXPECT_THAT(error.what(), HasSubstr(why));
    }
  }
};

TEST_F(ShareTest, RefusesATensorRegisteredTwice) {
  Bench bench(json::object());
  bench.net->register_parameter("again", bench.net->fc1->weight);
  expect_refused([&] { bench.me.share(bench.net, bench.optimizer); }, "'again'");
}

TEST_F(ShareTest, RefusesAnOptimizerOverOtherTensors) {
  Bench bench(json::object());
  torch::optim::SGD other(Net()->parameters(), 0.1);
  expect_refused([&] { bench.me.share(bench.net, other); }, "not a parameter of the model");
}

TEST_F(ShareTest, RefusesComplexParameters) {
  Bench bench(json::object());
  bench.net->to(torch::kComplexFloat);
  expect_refused([&] { bench.me.share(bench.net, bench.optimizer); }, "'fc1.weight' is ComplexFloat");
}

TEST_F(ShareTest, ADataSetOrBatchThatTheRunDoesNotKnowIsRefused) {
  Bench bench(json::object());
  expect_refused([&] { bench.me.batches(problem(), kBatch * 2); }, "--batch");
}

TEST_F(ShareTest, AGraphKeptAcrossAFlipThrowsTorchsOwnError) {
  Bench bench(json::object({{"payload", "models"}}));
  auto shared = bench.me.share(bench.net, bench.optimizer);
  auto batches = bench.me.batches(problem());
  ASSERT_TRUE(bench.me.next());
  auto kept = loss_of(bench.net, batches.next());
  bench.body(shared, batches);
  EXPECT_THROW(kept.backward(), c10::Error);
}

TEST_F(ShareTest, ASnapshotIsACopy) {
  Bench bench(json::object({{"payload", "models"}}));
  auto shared = bench.me.share(bench.net, bench.optimizer);
  auto batches = bench.me.batches(problem());
  ASSERT_TRUE(bench.me.next());
  const auto before = shared.snapshot();
  const auto copy = before["fc1.weight"].clone();
  bench.body(shared, batches);
  EXPECT_TRUE(torch::equal(before["fc1.weight"], copy));
  EXPECT_FALSE(torch::equal(before["fc1.weight"], bench.net->fc1->weight));
}

TEST_F(ShareTest, StepOutsideTheLoopIsRefused) {
  Bench bench(json::object());
  auto shared = bench.me.share(bench.net, bench.optimizer);
  EXPECT_THROW(shared.step(torch::zeros({})), std::logic_error);
}

TEST_F(ShareTest, ADroppedUpdateDoesNotStepTheOptimizer) {
  Bench bench(json::object({{"payload", "gradients"}, {"updates", 2}, {"drop_at", {0}}}));
  auto shared = bench.me.share(bench.net, bench.optimizer);
  auto batches = bench.me.batches(problem());
  const auto before = bench.net->fc1->weight.detach().clone();
  ASSERT_TRUE(bench.me.next());
  bench.body(shared, batches);
  EXPECT_TRUE(torch::equal(bench.net->fc1->weight, before));
  ASSERT_TRUE(bench.me.next());
  EXPECT_EQ(bench.me.update(), 1);
}

TEST_F(ShareTest, ALoaderOfTorchReadsThisWorkersShare) {
  struct Numbers : torch::data::datasets::Dataset<Numbers> {
    torch::data::Example<> get(std::size_t index) override {
      return {torch::full({1}, static_cast<double>(index)), torch::zeros({1})};
    }
    decltype(std::declval<torch::data::datasets::Dataset<Numbers>&>().size()) size() const override { return kSamples; }
  };
  Bench bench(json::object({{"updates", kSamples / kBatch}}));
  auto shared = bench.me.share(bench.net, bench.optimizer);
  auto loader = torch::data::make_data_loader(Numbers().map(torch::data::transforms::Stack<>()),
                                              bench.me.sampler(kSamples), kBatch);
  auto batch = loader->begin();
  std::set<float> seen;
  while (bench.me.next()) {
    for (std::int64_t i = 0; i < batch->data.size(0); ++i) seen.insert(batch->data[i][0].item<float>());
    bench.optimizer.zero_grad();
    auto loss = bench.net->fc1->weight.square().sum();
    loss.backward();
    shared.step(loss);
    ++batch;
  }
  EXPECT_EQ(seen.size(), static_cast<std::size_t>(kSamples));
}

Trainer small_job() {
  return {
      .model = [] { return Net(); },
      .loss = [](torch::Tensor output, torch::Tensor target) { return torch::cross_entropy_loss(output, target); },
      .data = problem(),
      .test = problem(),
      .optimizer = [](std::vector<torch::Tensor> p) { return sgd(std::move(p)); },
      .schedule =
          [](torch::optim::Optimizer& optimizer) { return std::make_unique<torch::optim::StepLR>(optimizer, 50, 0.5); },
      .clip_norm = 1,
  };
}

TEST(TrainerTest, LearnsTheProblemItIsGiven) {
  reset_solo_log();
  const auto done =
      run_as_worker([](Worker& me) { small_job().train(me); }, start_with({{"updates", 101}, {"evaluate_every", 50}}));
  ASSERT_TRUE(done) << done.error().text;
  ASSERT_EQ(solo_log().evaluated.size(), 2U);
  EXPECT_GT(solo_log().evaluated.back(), 0.9);
}

TEST(RunWorkerTest, AnExceptionOfTheUsersReachesTheJobWithItsText) {
  reset_solo_log();
  const auto failed = run_as_worker(
      [](Worker& me) {
        Net net;
        torch::optim::SGD optimizer(net->parameters(), 0.1);
        auto shared = me.share(net, optimizer);
        me.next();
        throw std::runtime_error("no such column: age");
      },
      start_with(json::object(), {}, 1));
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().text, "no such column: age");
  EXPECT_EQ(solo_log().fail_reason, "worker 1: no such column: age");
}

TEST(RunWorkerTest, ArgumentsThatDoNotDecodeFailTheJob) {
  reset_solo_log();
  auto start = start_with(json::object());
  const auto train = [](Worker&, const std::string&) {};
  start.call = &actors::run_function_with<Worker, std::remove_const_t<decltype(train)>, std::tuple<std::string>>;
  start.arguments = {Bytes{}, Bytes(3)};
  const auto failed = run_worker(start);
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().text, HasSubstr("cannot decode argument 1"));
}

TEST(RunWorkerTest, AnAgentThatIsNotThereIsNamed) {
  WorkerStart start = start_with(json::object());
  start.endpoint = "ipc:///nowhere";
  const auto failed = run_as_worker(
      [](Worker& me) {
        Net net;
        torch::optim::SGD optimizer(net->parameters(), 0.1);
        me.share(net, optimizer);
        me.next();
      },
      start);
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().text, HasSubstr("ipc:///nowhere"));
}

TEST(FashionMnistTest, IsReadOnceANodeAndNormalised) {
  if (!std::filesystem::exists("/usr/share/datasets/fashion-mnist"))
    GTEST_SKIP() << "dataset-fashion-mnist is not installed";
  reset_solo_log();
  const auto done = run_as_worker(
      [](Worker& me) {
        Net net;
        torch::optim::SGD optimizer(net->parameters(), 0.1);
        auto shared = me.share(net, optimizer);
        me.next();
        const auto [x, y] = fashion_mnist_test().get({0, 9'999});
        EXPECT_EQ(x.sizes(), (std::vector<std::int64_t>{2, 1, 28, 28}));
        EXPECT_EQ(y[0].item<std::int64_t>(), 9);  // An ankle boot.
        const auto all = fashion_mnist_test().slice(0, 10'000);
        EXPECT_NEAR(all.data.mean().item<double>(), 0, 0.02);
        EXPECT_NEAR(all.data.std().item<double>(), 1, 0.02);
        EXPECT_EQ(torch::bincount(all.target).min().item<std::int64_t>(), 1000);
      },
      start_with(json::object()));
  ASSERT_TRUE(done) << done.error().text;
  EXPECT_EQ(solo_log().objects_filled, 1);
  EXPECT_EQ(solo_log().objects.at("fashion-mnist/test").size(), 7'850'000U);
}

}  // namespace
}  // namespace paceline::train
