#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "algorithms/train/worker_main.h"
#include "paceline/train.h"
#include "runtime/base/json.h"
#include "tests/support/solo_session.h"

// Models of other types than float32, and of several, on a session of one worker that really flips buffers
// (tests/support/solo_session.h). What the plain libtorch loop gives is what they are held to.

namespace paceline::train {
namespace {

using nlohmann::json;
using test::reset_solo_log;
using test::solo_log;
using torch::kBFloat16;
using torch::kFloat16;
using torch::kFloat32;
using torch::kFloat64;

constexpr std::int64_t kBatch = 8;

struct Types {
  std::string name;
  torch::ScalarType lower, upper, buffers;
  bool wide;  ///< What is averaged is float64.
};

/// Parameters are stored as `types` say and computed with as float64 if they are wide, else as float32: libtorch's
/// CPU kernels do not multiply matrices of every type.
struct NetImpl : torch::nn::Module {
  explicit NetImpl(const Types& types) : work(types.wide ? kFloat64 : kFloat32) {
    torch::manual_seed(3);
    lower = register_parameter("lower", (torch::randn({5, 6}, kFloat32) * 0.3).to(types.lower));
    upper = register_parameter("upper", (torch::randn({3, 5}, kFloat32) * 0.3).to(types.upper));
    mean = register_buffer("mean", torch::zeros({5}, types.buffers));
    steps = register_buffer("steps", torch::zeros({}, torch::kInt64));
  }
  torch::Tensor forward(const torch::Tensor& x) {
    const auto h = torch::tanh(torch::linear(x.to(work), lower.to(work)));
    if (is_training()) {
      torch::NoGradGuard no_grad;
      mean.mul_(0.5).add_(h.mean(0).to(mean.scalar_type()), 0.5);
      steps.add_(1);
    }
    return torch::linear(h, upper.to(work));
  }
  torch::ScalarType work;
  torch::Tensor lower, upper, mean, steps;
};
TORCH_MODULE(Net);

torch::Tensor loss_of(Net& net, const torch::Tensor& x) {
  return torch::cross_entropy_loss(net->forward(x), x.narrow(1, 0, 3).argmax(1));
}

std::unique_ptr<torch::optim::Optimizer> optimizer_of(Net& net) {
  return std::make_unique<torch::optim::SGD>(net->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
}

class TypesTest : public ::testing::TestWithParam<std::tuple<const char*, Types>> {
 protected:
  TypesTest() { reset_solo_log(); }
  const Types& types() const { return std::get<1>(GetParam()); }

  WorkerStart start(std::int64_t updates, int bodies, json more = json::object(), json options = json::object()) const {
    more.update({{"payload", std::get<0>(GetParam())}, {"updates", updates}, {"bodies", bodies}, {"seed", 5}});
    options.update({{"batch", kBatch}, {"samples", 64}, {"seed", 5}});
    WorkerStart start;
    start.endpoint = json_text(more);
    start.options = json_text(options);
    return start;
  }

  Net through_worker(const WorkerStart& start, std::vector<torch::Tensor>* drawn = nullptr, double scale = 1) const {
    Net net(types());
    for (auto& parameter : net->parameters()) parameter.data().mul_(scale);
    const auto optimizer = optimizer_of(net);
    Worker me(start);
    auto shared = me.share(net, *optimizer);
    while (me.next()) {
      const auto x = torch::randn({kBatch, 6});
      if (drawn) drawn->push_back(x);
      optimizer->zero_grad();
      const auto loss = loss_of(net, x);
      loss.backward();
      shared.step(loss);
    }
    return net;
  }

  /// `bodies` mini-batches a step, whose gradients are summed as what is averaged.
  Net plainly(const std::vector<torch::Tensor>& drawn, std::size_t bodies) const {
    Net net(types());
    const auto optimizer = optimizer_of(net);
    for (std::size_t at = 0; at + bodies <= drawn.size(); at += bodies) {
      std::vector<torch::Tensor> sums;
      for (std::size_t k = 0; k < bodies; ++k) {
        optimizer->zero_grad();
        loss_of(net, drawn[at + k]).backward();
        for (std::size_t i = 0; i < 2; ++i) {
          const auto gradient = net->parameters()[i].grad().to(net->work);
          k == 0 ? sums.push_back(gradient.clone()) : void(sums[i].add_(gradient));
        }
      }
      for (std::size_t i = 0; i < 2; ++i) {
        auto& parameter = i == 0 ? net->lower : net->upper;
        parameter.mutable_grad() = (sums[i] / static_cast<double>(bodies)).to(parameter.scalar_type());
      }
      optimizer->step();
    }
    return net;
  }
};

void expect_equal(const Net& ours, const Net& plain, double tolerance) {
  for (const auto& item : plain->named_parameters()) {
    const auto& tensor = ours->named_parameters()[item.key()];
    EXPECT_EQ(tensor.scalar_type(), item.value().scalar_type()) << item.key();
    EXPECT_TRUE(torch::allclose(tensor, item.value(), tolerance, tolerance)) << item.key();
  }
  EXPECT_EQ(ours->mean.scalar_type(), plain->mean.scalar_type());
  // Buffers travel as their changes, where gradients do.
  const double rounding = plain->mean.scalar_type() == kFloat64   ? 1e-12
                          : plain->mean.scalar_type() == kFloat32 ? 1e-6
                                                                  : 1e-2;
  EXPECT_TRUE(torch::allclose(ours->mean, plain->mean, rounding, rounding));
  EXPECT_EQ(ours->steps.item<std::int64_t>(), plain->steps.item<std::int64_t>());
}

TEST_P(TypesTest, TrainExactlyAsThePlainLoopDoes) {
  std::vector<torch::Tensor> drawn;
  const auto net = through_worker(start(20, 1), &drawn);
  ASSERT_EQ(drawn.size(), 20U);
  EXPECT_EQ(solo_log().wide, types().wide);
  expect_equal(net, plainly(drawn, 1), 0);
}

TEST_P(TypesTest, GradientsOfSeveralMiniBatchesAreSummedInTheSharedType) {
  std::vector<torch::Tensor> drawn;
  const auto net = through_worker(start(6, 4), &drawn);
  ASSERT_EQ(drawn.size(), 24U);
  expect_equal(net, plainly(drawn, 4), 0);
}

TEST_P(TypesTest, AWorkerRestoredFromAReplicaGoesOnAsIfNothingHadHappened) {
  const auto net = through_worker(start(8, 1, {{"capture_at", {5}}}));
  solo_log().replica = solo_log().captures.at(0);
  const auto restored = through_worker(start(8, 1, {{"restore_at", {5}}}), nullptr, /*scale=*/2);
  solo_log().replica.clear();
  expect_equal(restored, net, 0);
}

TEST_P(TypesTest, AnOptimisersStateIsAveragedWithThem) {
  std::vector<torch::Tensor> drawn;
  const auto net = through_worker(start(10, 1, {}, {{"optimizer_state", "average"}}), &drawn);
  EXPECT_EQ(solo_log().elements, 2U * (30 + 15) + (types().buffers == kFloat64 && !types().wide ? 0 : 5) + 2);
  expect_equal(net, plainly(drawn, 1), 0);
}

INSTANTIATE_TEST_SUITE_P(
    Each, TypesTest,
    ::testing::Combine(::testing::Values("gradients", "models", "both"),
                       ::testing::Values(Types{"f64", kFloat64, kFloat64, kFloat64, true},
                                         Types{"bf16", kBFloat16, kBFloat16, kBFloat16, false},
                                         Types{"f16", kFloat16, kFloat16, kFloat16, false},
                                         Types{"bf16_and_f32", kBFloat16, kFloat32, kFloat32, false},
                                         Types{"f32_and_f64", kFloat32, kFloat64, kFloat32, true},
                                         Types{"f16_and_f64", kFloat16, kFloat64, kBFloat16, true},
                                         Types{"f32_with_f64_buffer", kFloat32, kFloat32, kFloat64, false})),
    [](const auto& of) { return std::get<0>(of.param) + ("_" + std::get<1>(of.param).name); });

}  // namespace
}  // namespace paceline::train
