#include "runtime/collective/cuda/device_kernels.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "runtime/collective/kernels.h"

// The device's kernels against their twins on the CPU, bit by bit. Skipped where there is no device.

namespace paceline::collective {
namespace {

using memory::Dtype;

class DeviceKernelsTest : public ::testing::TestWithParam<Dtype> {
 protected:
  void SetUp() override {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) GTEST_SKIP() << "no CUDA device here";
  }
  void TearDown() override {
    for (void* block : blocks_) cudaFree(block);
  }
  void* on_device(const std::vector<std::byte>& bytes) {
    void* block = nullptr;
    EXPECT_EQ(cudaMalloc(&block, bytes.size()), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(block, bytes.data(), bytes.size(), cudaMemcpyHostToDevice), cudaSuccess);
    blocks_.push_back(block);
    return block;
  }

 private:
  std::vector<void*> blocks_;
};

/// Finite numbers of about the same size, as gradients are.
std::vector<std::byte> numbers(Dtype dtype, std::size_t elements, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::byte> bytes(elements * memory::size_of(dtype));
  if (dtype == Dtype::f32 || dtype == Dtype::f64) {
    std::normal_distribution<double> normal;
    for (std::size_t i = 0; i < elements; ++i) {
      const double wide = normal(random);
      const auto narrow = static_cast<float>(wide);
      if (dtype == Dtype::f64) std::memcpy(&bytes[i * 8], &wide, 8);
      if (dtype == Dtype::f32) std::memcpy(&bytes[i * 4], &narrow, 4);
    }
    return bytes;
  }
  for (std::size_t i = 0; i < elements; ++i) {  // Any sign and mantissa, exponents around 1.
    const std::uint16_t exponent = dtype == Dtype::f16 ? static_cast<std::uint16_t>(13 + random() % 4) << 10
                                                       : static_cast<std::uint16_t>(125 + random() % 4) << 7;
    const std::uint16_t rest = random() & (dtype == Dtype::f16 ? 0x83ff : 0x807f);
    const auto half = static_cast<std::uint16_t>(exponent | rest);
    std::memcpy(&bytes[i * 2], &half, 2);
  }
  return bytes;
}

TEST_P(DeviceKernelsTest, GivesTheBitsOfItsTwin) {
  for (const std::size_t elements : {std::size_t{1}, std::size_t{257}, std::size_t{3'000'001}}) {
    for (const std::size_t count : {1u, 2u, 5u}) {
      std::vector<std::vector<std::byte>> inputs;
      std::vector<const void*> host;
      std::vector<const void*> device;
      for (unsigned k = 0; k < count; ++k) inputs.push_back(numbers(GetParam(), elements, 17 + k));
      for (const auto& input : inputs) {
        host.push_back(input.data());
        device.push_back(on_device(input));
      }
      const double scale = 1.0 / static_cast<double>(count);
      std::vector<std::byte> expected(inputs[0].size());
      sum_into(expected.data(), scale, host, elements, GetParam());
      auto* const out = const_cast<void*>(device[0]);  // In place.
      const auto done = sum_into_on_device(out, scale, device, elements, GetParam(), nullptr);
      ASSERT_TRUE(done) << done.error().text;
      std::vector<std::byte> got(expected.size());
      ASSERT_EQ(cudaMemcpy(got.data(), out, got.size(), cudaMemcpyDeviceToHost), cudaSuccess);
      EXPECT_EQ(got, expected) << elements << " elements, " << count << " inputs";
    }
  }
}

TEST_P(DeviceKernelsTest, TooManyInputsAreRefused) {
  const std::vector<const void*> inputs(kDeviceInputsMax + 1, nullptr);
  EXPECT_FALSE(sum_into_on_device(nullptr, 1, inputs, 1, GetParam(), nullptr));
}

INSTANTIATE_TEST_SUITE_P(Types, DeviceKernelsTest, ::testing::Values(Dtype::f32, Dtype::f64, Dtype::bf16, Dtype::f16));

}  // namespace
}  // namespace paceline::collective
