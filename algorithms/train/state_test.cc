#include <gtest/gtest.h>
#include <map>

#include "algorithms/train/optimizer_state.h"
#include "algorithms/train/parameters.h"
#include "algorithms/train/replica.h"
#include "algorithms/train/safetensors.h"

namespace paceline::train {
namespace {

/// Two parameters that take a few steps on fixed gradients.
struct Problem {
  torch::Tensor a = torch::ones({3, 2}, torch::requires_grad());
  torch::Tensor b = torch::full({4}, 2.0, torch::requires_grad());
  std::vector<torch::Tensor> list{a, b};
  NamedTensors named{{"a", a}, {"b", b}};

  void step(torch::optim::Optimizer& optimizer, int times) {
    for (int i = 0; i < times; ++i) {
      optimizer.zero_grad();
      (a.pow(3).sum() + b.sin().sum()).backward();
      optimizer.step();
    }
  }
};

template <class Optimizer, class Options>
void expect_same_course_after_copy(const Options& options) {
  Problem original;
  Optimizer first(original.list, options);
  original.step(first, 5);
  const auto state = read_optimizer_state(first, original.named);
  EXPECT_TRUE(has_known_state(first));
  EXPECT_FALSE(state.empty());

  Problem copy;
  {
    torch::NoGradGuard no_grad;
    copy.a.copy_(original.a);
    copy.b.copy_(original.b);
  }
  Optimizer second(copy.list, options);
  write_optimizer_state(second, copy.named, {state.begin(), state.end()});
  original.step(first, 5);
  copy.step(second, 5);
  EXPECT_TRUE(torch::equal(original.a, copy.a));
  EXPECT_TRUE(torch::equal(original.b, copy.b));
}

TEST(OptimizerStateTest, EveryKnownOptimizerGoesOnAsTheOriginal) {
  using namespace torch::optim;
  expect_same_course_after_copy<SGD>(SGDOptions(0.01).momentum(0.9).nesterov(true));
  expect_same_course_after_copy<Adam>(AdamOptions(0.01));
  expect_same_course_after_copy<Adam>(AdamOptions(0.01).amsgrad(true));
  expect_same_course_after_copy<AdamW>(AdamWOptions(0.01));
  expect_same_course_after_copy<RMSprop>(RMSpropOptions(0.01).momentum(0.9).centered(true));
  expect_same_course_after_copy<Adagrad>(AdagradOptions(0.01));
}

template <class Optimizer, class Options>
void expect_same_course_from_a_state_made_before(const Options& options) {
  Problem early, plain;
  Optimizer first(early.list, options), second(plain.list, options);
  create_optimizer_state(first);
  plain.step(second, 1);
  const auto made = read_optimizer_state(first, early.named), wanted = read_optimizer_state(second, plain.named);
  ASSERT_EQ(made.size(), wanted.size());
  for (std::size_t i = 0; i < made.size(); ++i) EXPECT_EQ(made[i].first, wanted[i].first);
  early.step(first, 5);
  plain.step(second, 4);
  EXPECT_TRUE(torch::equal(early.a, plain.a));
  EXPECT_TRUE(torch::equal(early.b, plain.b));
}

TEST(OptimizerStateTest, AStateMadeBeforeTheFirstStepIsTheOneThatTheOptimizerMakes) {
  using namespace torch::optim;
  expect_same_course_from_a_state_made_before<SGD>(SGDOptions(0.01));
  expect_same_course_from_a_state_made_before<SGD>(SGDOptions(0.01).momentum(0.9).nesterov(true));
  expect_same_course_from_a_state_made_before<Adam>(AdamOptions(0.01).amsgrad(true));
  expect_same_course_from_a_state_made_before<AdamW>(AdamWOptions(0.01));
  expect_same_course_from_a_state_made_before<RMSprop>(RMSpropOptions(0.01).momentum(0.9).centered(true));
  expect_same_course_from_a_state_made_before<Adagrad>(AdagradOptions(0.01));
}

TEST(OptimizerStateTest, AStateOfAnotherShapeIsRefused) {
  Problem problem;
  torch::optim::SGD optimizer(problem.list, torch::optim::SGDOptions(0.1).momentum(0.9));
  EXPECT_THROW(write_optimizer_state(optimizer, problem.named, {{"momentum_buffer.a", torch::zeros({7})}}),
               std::invalid_argument);
}

TEST(OptimizerStateTest, ClearingStartsMomentumAnew) {
  Problem problem;
  torch::optim::SGD optimizer(problem.list, torch::optim::SGDOptions(0.01).momentum(0.9));
  problem.step(optimizer, 2);
  clear_optimizer_state(optimizer);
  EXPECT_TRUE(read_optimizer_state(optimizer, problem.named).empty());
}

Replica example() {
  Replica replica;
  replica.update = 17;
  replica.scheduled = {17, 4};
  replica.learning_rates = {0.1, 1.0 / 3};
  replica.scheduled_rates = {0.1, 1.0 / 6};
  replica.model = {{"fc.weight", torch::arange(6, torch::kFloat32).view({2, 3})},
                   {"fc.count", torch::tensor(7, torch::kInt64)}};
  replica.optimizer = {{"momentum_buffer.fc.weight", torch::ones({2, 3})}};
  replica.outer = torch::tensor({{1.5, 2.5}, {-0.5, 0.0}}, torch::kFloat64);
  replica.user = {std::string("\x00\x01zwei", 6), ""};
  replica.notes = {{"strategy", "wagma"}, {"sampler_position", "17"}};
  return replica;
}

TEST(ReplicaTest, ReadsBackWhatItWrote) {
  const auto bytes = encode_replica(example()).value();
  const auto read = decode_replica(bytes);
  ASSERT_TRUE(read) << read.error().text;
  EXPECT_EQ(read->update, 17);
  EXPECT_EQ(read->learning_rates, example().learning_rates);
  EXPECT_EQ(read->scheduled, example().scheduled);
  EXPECT_EQ(read->scheduled_rates, example().scheduled_rates);
  ASSERT_EQ(read->model.size(), 2U);
  EXPECT_TRUE(torch::equal(read->model[0].second, example().model[0].second));
  EXPECT_EQ(read->model[1].second.item<std::int64_t>(), 7);
  EXPECT_EQ(read->optimizer[0].first, "momentum_buffer.fc.weight");
  EXPECT_TRUE(torch::equal(read->outer, example().outer));
  EXPECT_EQ(read->user, example().user);
  EXPECT_EQ(read->notes.at("strategy"), "wagma");
}

TEST(ReplicaTest, AFileOfSomebodyElseIsRefused) {
  const auto bytes = encode_safetensors({{{"format", "pt"}}, {}}).value();
  const auto read = decode_replica(bytes);
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().text.find("not a checkpoint"), std::string::npos);
}

TEST(ParametersTest, MoveWithoutCopyingAndLeaveWithCopies) {
  torch::nn::Linear layer(3, 2);
  torch::optim::SGD optimizer(layer->parameters(), 0.1);
  Parameters parameters;
  parameters.add(*layer, optimizer);
  ASSERT_EQ(parameters.elements(), 8U + parameters.trainable(0).size());
  const auto weight = layer->weight.detach().clone();
  std::vector<float> first(8);
  std::vector<float> second(8, 5);
  parameters.place(first.data());
  EXPECT_EQ(layer->weight.data_ptr(), first.data());
  EXPECT_TRUE(torch::equal(layer->weight, weight));
  parameters.move_to(second.data());
  EXPECT_EQ(layer->weight[0][0].item<float>(), 5);
  EXPECT_EQ(layer->bias.data_ptr(), second.data() + 6);
  parameters.leave();
  second.assign(8, 0);
  EXPECT_EQ(layer->bias[1].item<float>(), 5);
}

TEST(ParametersTest, AGradientIsZeroWhereOthersHaveItAndUndefinedWhereNobodyHas) {
  torch::nn::Linear layer(3, 2);
  torch::optim::SGD optimizer(layer->parameters(), 0.1);
  Parameters parameters;
  parameters.add(*layer, optimizer);
  layer->weight.sum().backward();
  const auto& pieces = parameters.gradients(1);
  ASSERT_EQ(pieces.size(), 3U);
  EXPECT_EQ(pieces[1].data, nullptr);
  const auto* const has = static_cast<const float*>(pieces[2].data);
  EXPECT_EQ(has[0], 1);
  EXPECT_EQ(has[1], 0);

  std::vector<float> averaged(parameters.elements(), 0.0F);
  averaged[8] = 0.5F;  // Of two workers one has the weight's, nobody the bias's.
  parameters.lend_gradients(0, averaged.data());
  EXPECT_EQ(layer->weight.grad()[1][2].item<float>(), 0);
  EXPECT_FALSE(layer->bias.grad().defined());
  parameters.take_back_gradients(0);
  EXPECT_EQ(layer->weight.grad()[1][2].item<float>(), 1);
}

}  // namespace
}  // namespace paceline::train
