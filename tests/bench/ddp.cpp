// What torch's DistributedDataParallel does, from C++: its reducer (buckets, averaged by gloo while the backward pass
// goes on) around the loop of training_loop.cpp. For libtorch 1.13: later ones have other constructors.
#define USE_C10D_GLOO
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>

#include <algorithm>

#include "tests/bench/loop.h"

namespace bench {
namespace {

c10::intrusive_ptr<c10d::ProcessGroup> join(int rank, int processes, const std::string& path) {
  auto options = c10d::ProcessGroupGloo::Options::create();
  options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForInterface("lo"));
  options->threads = 2;  // As Python's init_process_group has it.
  return c10::make_intrusive<c10d::ProcessGroupGloo>(c10::make_intrusive<c10d::FileStore>(path, processes), rank,
                                                     processes, options);
}

}  // namespace

double train_with_ddp(const std::string& model, long steps, int rank, int processes, const std::string& path) {
  torch::set_num_threads(1);
  torch::manual_seed(1);
  std::srand(static_cast<unsigned>(rank + 1));
  auto group = join(rank, processes, path);
  auto net = make_net(model);
  const auto parameters = net->parameters();
  const std::vector<bool> sparse(parameters.size(), false);
  auto [buckets, limits] = c10d::compute_bucket_assignment_by_size(
      parameters, {c10d::kDefaultFirstBucketBytes, c10d::kDefaultBucketBytesCap}, sparse);
  std::reverse(buckets.begin(), buckets.end());  // Gradients come last layer first.
  std::reverse(limits.begin(), limits.end());
  c10d::Reducer reducer(parameters, buckets, limits, group, sparse, c10d::kDefaultBucketBytesCap, false, false, {},
                        c10d::kDefaultFirstBucketBytes);
  torch::optim::SGD optimizer(parameters, sgd());
  Batches batches(model);
  Meter meter(steps);
  for (long step = 0; step < steps; ++step) {
    if (meter.is_next_timed()) group->barrier()->wait();
    auto [x, y] = batches.next();
    optimizer.zero_grad();
    reducer.rebuild_buckets();
    reducer.prepare_for_forward();
    auto output = net->forward(x);
    reducer.prepare_for_backward({});
    auto loss = loss_of(model, output, y);
    loss.backward();
    optimizer.step();
    (void)loss.item<double>();
    meter.step();
  }
  group->barrier()->wait();
  return meter.samples_per_s();
}

}  // namespace bench
