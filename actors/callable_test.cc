#include "actors/callable.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>

namespace paceline::actors {
namespace {

int twice(int x) { return 2 * x; }

template <class F>
Result<F> through_bytes(const F& callable) {
  return encode_callable(callable).and_then([](const Bytes& bytes) { return decode_callable<F>(bytes); });
}

TEST(Callable, AFunctionTravelsByName) { EXPECT_EQ((*through_bytes(&twice))(4), 8); }

TEST(Callable, ALambdaWithoutCapturesTravelsAsNothing) {
  const auto lambda = [](int x) { return x + 1; };
  EXPECT_TRUE(encode_callable(lambda)->empty());
  EXPECT_EQ((*through_bytes(lambda))(1), 2);
}

TEST(Callable, CapturesOfPlainValuesTravel) {
  struct Sizes {
    int hidden = 32;
    std::int64_t samples = 60'000;
  };
  const double rate = 0.1;
  const Sizes sizes;
  const std::array<float, 3> betas{0.9F, 0.99F, 1e-8F};
  const auto lambda = [rate, sizes, betas](int x) { return rate * sizes.hidden + betas[1] + static_cast<double>(x); };
  const auto there = through_bytes(lambda);
  ASSERT_TRUE(there) << there.error().text;
  EXPECT_EQ((*there)(3), lambda(3));
}

TEST(Callable, AddressesAreRefused) {
  int local = 1;
  static int global = 2;
  const auto heap = std::make_unique<int>(3);
  int* const local_address = &local;
  [[maybe_unused]] int* const global_address = &global;
  int* const heap_address = heap.get();
  const char* const literal = "four";
  const auto refused = [](const auto& lambda) {
    const auto encoded = encode_callable(lambda);
    return !encoded && encoded.error().kind == ErrorKind::invalid &&
           encoded.error().text.find("captures by reference, or a pointer") != std::string::npos;
  };
  EXPECT_TRUE(refused([&local] { return local; }));
  EXPECT_TRUE(refused([&] { return local; }));
  EXPECT_TRUE(refused([local_address] { return *local_address; }));
  EXPECT_TRUE(refused([heap_address] { return *heap_address; }));
  EXPECT_TRUE(refused([literal, x = 1.0] { return x + literal[0]; }));
#ifdef __PIE__  // Else it is at the same address everywhere.
  EXPECT_TRUE(refused([global_address] { return *global_address; }));
#endif
}

TEST(Callable, NumbersAreNotTakenForAddresses) {
  const std::int64_t big = std::int64_t{1} << 40;
  const std::int32_t first = 7, second = 20'000;  // Together they are a word between the bounds.
  const double nothing = 0, small = 1e-300, large = 1e300;
  const auto lambda = [=] { return static_cast<double>(big) + first + second + nothing + small + large; };
  const auto there = through_bytes(lambda);
  ASSERT_TRUE(there) << there.error().text;
  EXPECT_EQ((*there)(), lambda());
}

TEST(Callable, WhatIsNoPlainValueDoesNotTravel) {
  const std::string text = "net";
  const auto owns = [text] { return text.size(); };
  EXPECT_FALSE(Travelling<decltype(owns)>);
  EXPECT_TRUE(Travelling<decltype(&twice)>);
}

TEST(Callable, BytesOfAnotherSizeAreRefused) {
  const int n = 1;
  const auto lambda = [n] { return n; };
  EXPECT_FALSE(decode_callable<std::remove_const_t<decltype(lambda)>>(Bytes(sizeof n + 1)));
}

}  // namespace
}  // namespace paceline::actors
