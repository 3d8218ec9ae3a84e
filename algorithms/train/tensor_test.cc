#include "paceline/tensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace paceline::actors {
namespace {

using testing::HasSubstr;

static_assert(Serialisable<torch::Tensor> && Serialisable<std::vector<torch::Tensor>>);
static_assert(Serialisable<std::map<std::string, torch::Tensor>>);

torch::Tensor there_and_back(const torch::Tensor& tensor) {
  const auto back = from_bytes<torch::Tensor>(to_bytes(tensor), "a tensor");
  EXPECT_TRUE(back) << back.error().text;
  return back ? *back : torch::Tensor();
}

bool same(const torch::Tensor& a, const torch::Tensor& b) {
  return a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() && torch::equal(a, b);
}

TEST(TensorTest, EveryTypeAndShapeComesOutAsItWentIn) {
  torch::manual_seed(1);
  for (const auto type : {torch::kFloat32, torch::kFloat64, torch::kFloat16, torch::kBFloat16, torch::kInt64,
                          torch::kInt32, torch::kInt16, torch::kInt8, torch::kUInt8, torch::kBool})
    for (const auto& shape : std::vector<std::vector<std::int64_t>>{{}, {0}, {3}, {2, 0, 4}, {2, 3, 4}}) {
      const auto tensor = torch::randn(shape).mul(3).to(type);
      EXPECT_TRUE(same(there_and_back(tensor), tensor)) << type << ' ' << tensor.sizes();
    }
}

TEST(TensorTest, WhatDoesNotLieInARowArrivesSo) {
  const auto tensor = torch::arange(12).view({3, 4}).t().slice(0, 1, 3);
  ASSERT_FALSE(tensor.is_contiguous());
  const auto back = there_and_back(tensor);
  EXPECT_TRUE(back.is_contiguous());
  EXPECT_TRUE(same(back, tensor));
}

TEST(TensorTest, AParameterStaysOneAndAGraphIsLeftBehind) {
  const auto weight = torch::ones({2}, torch::requires_grad());
  EXPECT_TRUE(there_and_back(weight).requires_grad());
  const auto product = there_and_back(weight * 2);
  EXPECT_TRUE(product.is_leaf());
  EXPECT_FALSE(there_and_back(torch::ones({2})).requires_grad());
}

TEST(TensorTest, NoTensorIsNoTensor) { EXPECT_FALSE(there_and_back(torch::Tensor()).defined()); }

TEST(TensorTest, ASparseOneIsRefused) {
  EXPECT_THAT([] { (void)to_bytes(torch::eye(3).to_sparse()); },
              testing::ThrowsMessage<std::invalid_argument>(HasSubstr("pass it as a dense one")));
}

TEST(TensorTest, BytesThatAreNoTensorAreRefused) {
  auto bytes = to_bytes(torch::ones({2, 3}));
  auto shorter = bytes;
  while (!shorter.empty()) {
    shorter.pop_back();
    ASSERT_FALSE(from_bytes<torch::Tensor>(shorter, "a tensor")) << shorter.size();
  }
  bytes[1] = std::byte{120};
  EXPECT_THAT(from_bytes<torch::Tensor>(bytes, "a tensor").error().text, HasSubstr("unknown type"));

  Bytes claims;
  ByteWriter archive(claims);
  archive(std::uint8_t{1}, static_cast<std::int8_t>(torch::kFloat32),
          std::vector<std::int64_t>{std::int64_t{1} << 40, std::int64_t{1} << 40});
  EXPECT_THAT(from_bytes<torch::Tensor>(claims, "a tensor").error().text, HasSubstr("more numbers than"));
}

}  // namespace
}  // namespace paceline::actors
