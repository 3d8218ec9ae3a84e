#include "algorithms/train/prefetch.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <atomic>
#include <stdexcept>
#include <thread>

#include "algorithms/train/dataset.h"

namespace paceline::train {
namespace {

/// Counts who reads it, and at how many places at once.
struct Counting final : Dataset::Source {
  std::int64_t size() const override { return 100; }
  Batch get(const std::vector<std::int64_t>& indices) override {
    EXPECT_EQ(readers++, 0);
    ++reads;
    elsewhere += std::this_thread::get_id() != home;
    if (indices.front() == 13) {
      --readers;
      throw std::runtime_error("there is no thirteenth");
    }
    const auto numbers = torch::tensor(indices, torch::kInt64);
    --readers;
    return {numbers.to(torch::kFloat32), numbers};
  }
  Batch slice(std::int64_t first, std::int64_t) override { return get({first}); }

  const std::thread::id home = std::this_thread::get_id();
  std::atomic<int> readers = 0, reads = 0, elsewhere = 0;
};

class PrefetchTest : public ::testing::Test {
 protected:
  std::int64_t first_of(const std::vector<std::int64_t>& indices, const std::vector<std::int64_t>& next) {
    return sut_.get(indices, next).target[0].item<std::int64_t>();
  }
  std::shared_ptr<Counting> source_ = std::make_shared<Counting>();
  Prefetch sut_{Dataset(source_)};
};

TEST_F(PrefetchTest, WhatFollowsIsReadElsewhere) {
  for (std::int64_t k = 0; k < 10; ++k) EXPECT_EQ(first_of({2 * k, 2 * k + 1}, {2 * k + 2, 2 * k + 3}), 2 * k);
  EXPECT_LE(source_->reads, 11);
  EXPECT_GE(source_->elsewhere, 9);
}

TEST_F(PrefetchTest, WhatWasNotForeseenIsReadNow) {
  EXPECT_EQ(first_of({0}, {1}), 0);
  EXPECT_EQ(first_of({5}, {6}), 5);  // An update was abandoned.
  EXPECT_EQ(first_of({6}, {7}), 6);
  EXPECT_EQ(source_->reads - source_->elsewhere, 2);
}

TEST_F(PrefetchTest, AnErrorIsOfTheBatchThatHasIt) {
  EXPECT_EQ(first_of({12}, {13}), 12);
  EXPECT_THROW(first_of({13}, {14}), std::runtime_error);
  EXPECT_EQ(first_of({14}, {15}), 14);
}

}  // namespace
}  // namespace paceline::train
