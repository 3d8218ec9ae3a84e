#include "scheduler/rounds/outer_model.h"

#include <gtest/gtest.h>

#include <cstring>

namespace paceline::scheduler {
namespace {

using collective::Averager;
using collective::Reduction;
using memory::Dtype;
using Numbers = std::vector<double>;

std::span<double> numbers(std::span<std::byte> bytes) {
  return {reinterpret_cast<double*>(bytes.data()), bytes.size() / sizeof(double)};
}

/// momentum += mean - model, model += momentum.
void heavy_ball(Dtype dtype, std::span<std::byte> model, std::span<std::byte> momentum, std::span<std::byte> mean) {
  ASSERT_EQ(dtype, Dtype::f64);
  const auto x = numbers(model), m = numbers(momentum), next = numbers(mean);
  for (std::size_t k = 0; k < x.size(); ++k) {
    m[k] += next[k] - x[k];
    next[k] = x[k] += m[k];
  }
}

Numbers numbers_of(const OuterModel& model, std::size_t elements) {
  Numbers values(elements);
  std::memcpy(values.data(), model.data(), elements * sizeof(double));
  return values;
}

Reduction weighted_sum(const std::vector<const Numbers*>& models, std::vector<double> weights) {
  Reduction reduction{.inputs = {}, .weights = std::move(weights), .outputs = {}};
  reduction.elements = models[0]->size();
  reduction.dtype = Dtype::f64;
  for (const auto* model : models) reduction.inputs.push_back(model->data());
  return reduction;
}

TEST(OuterModel, CarriesOnWithTheWeightedMeanAndGivesEverybodyTheSame) {
  OuterModel sut(heavy_ball, 2);
  EXPECT_FALSE(sut.has_begun());
  const Numbers start{0, 8};
  sut.begin(std::as_bytes(std::span(start)), Dtype::f64);
  ASSERT_TRUE(sut.has_begun());

  const Numbers fast{4, 4}, slow{0, 0};
  Numbers one(2), other(2);
  for (const Numbers& expected : {Numbers{3, 3}, Numbers{6, -2}}) {  // The mean is 3: momentum 3, -5; then 3, -5 again.
    auto reduction = weighted_sum({&fast, &slow}, {3, 1});
    reduction.outputs = {{one.data(), 1}, {other.data(), 1}};
    sut.carry_on(reduction, 0.25);
    Averager::run_inline(reduction);
    EXPECT_EQ(one, expected);
    EXPECT_EQ(other, expected);
    EXPECT_EQ(numbers_of(sut, 2), expected);
  }
}

TEST(OuterModel, OnlyAveragesWhatLiesBehindTheParameters) {
  OuterModel sut(heavy_ball, 1);
  const Numbers start{0, 0, 0};
  sut.begin(std::as_bytes(std::span(start)), Dtype::f64);
  const Numbers model{2, 2, 4};
  for (const Numbers& expected : {Numbers{2, 2, 4}, Numbers{4, 2, 4}}) {
    auto reduction = weighted_sum({&model}, {5});
    sut.carry_on(reduction, 0.2);
    Averager::run_inline(reduction);
    EXPECT_EQ(numbers_of(sut, 3), expected);
  }
}

TEST(OuterModel, TheBitsDoNotDependOnTheAveragingThreads) {
  constexpr std::size_t kElements = 200'003, kParameters = 150'001;
  Numbers start(kElements), model(kElements);
  for (std::size_t k = 0; k < kElements; ++k) model[k] = 1.0 / static_cast<double>(k + 1);
  Numbers expected;
  for (const int threads : {0, 1, 3}) {
    OuterModel sut(heavy_ball, kParameters);
    sut.begin(std::as_bytes(std::span(start)), Dtype::f64);
    Numbers out(kElements);
    auto averager = Averager::create(std::max(1, threads));
    ASSERT_TRUE(averager);
    for (int round = 0; round < 2; ++round) {
      auto reduction = weighted_sum({&model}, {1});
      reduction.outputs = {{out.data(), 1}};
      sut.carry_on(reduction, 1);
      if (threads == 0) {
        Averager::run_inline(reduction);
        continue;
      }
      ASSERT_TRUE((*averager)->submit(1, std::move(reduction), std::make_shared<int>()));
      while ((*averager)->completed().empty()) {
      }
    }
    if (expected.empty()) expected = out;
    EXPECT_EQ(out, expected);
    EXPECT_EQ(numbers_of(sut, kElements), expected);
  }
  EXPECT_EQ(expected[0], 2);
  EXPECT_EQ(expected[kParameters], model[kParameters]);
}

}  // namespace
}  // namespace paceline::scheduler
