#pragma once

#include <cstdint>
#include <future>
#include <utility>
#include <vector>

#include "paceline/data.h"

namespace paceline::train {

/// Gets a mini-batch ready on a thread of its own while the one before it is trained on. Used by one thread.
class Prefetch {
 public:
  explicit Prefetch(Dataset data) : data_(std::move(data)) {}
  Prefetch(const Prefetch&) = delete;
  Prefetch& operator=(const Prefetch&) = delete;

  /// The samples `indices`; from then on `next` are got ready. Throws what reading them threw. What was not foreseen,
  /// as the first ones, is read here and now.
  Batch get(const std::vector<std::int64_t>& indices, std::vector<std::int64_t> next);

 private:
  Dataset data_;
  std::vector<std::int64_t> ready_for_;
  std::future<Batch> ready_;
};

}  // namespace paceline::train
