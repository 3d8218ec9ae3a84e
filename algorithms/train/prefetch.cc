#include "algorithms/train/prefetch.h"

#include <torch/torch.h>

namespace paceline::train {

Batch Prefetch::get(const std::vector<std::int64_t>& indices, std::vector<std::int64_t> next) {
  const bool foreseen = ready_.valid() && ready_for_ == indices;
  if (ready_.valid() && !foreseen) ready_.wait();  // Two reads at a time are not what was asked for.
  Batch batch = foreseen ? ready_.get() : data_.get(indices);
  ready_for_ = std::move(next);
  ready_ = std::async(std::launch::async, [this] {
    torch::set_num_threads(1);  // A worker has one core.
    return data_.get(ready_for_);
  });
  return batch;
}

}  // namespace paceline::train
