// How fast tensors of 10 MiB go through three actors and come back: each is given to the next as a future.
//   paceline run tensor_pipeline       prints the rate with one under way, and with four
#include <paceline.h>
#include <paceline/train.h>

#include <chrono>
#include <cstdio>
#include <deque>

namespace {

constexpr int kTensors = 24;
constexpr double kMiB = 10;

class Stage {
 public:
  torch::Tensor pass(const torch::Tensor& tensor) const { return tensor; }
};

/// MiB/s of tensors that came back.
double rate(const std::vector<paceline::Handle<Stage>>& stages, int under_way) {
  const auto tensor = torch::ones({static_cast<std::int64_t>(kMiB * 1024 * 1024 / sizeof(float))});
  std::deque<paceline::Future<torch::Tensor>> answers;
  const auto begin = std::chrono::steady_clock::now();
  for (int sent = 0; sent < kTensors || !answers.empty();) {
    if (sent < kTensors && static_cast<int>(answers.size()) < under_way) {
      auto passed = stages[0].call(&Stage::pass, tensor);
      for (std::size_t i = 1; i < stages.size(); ++i) passed = stages[i].call(&Stage::pass, passed);
      answers.push_back(passed);
      ++sent;
      continue;
    }
    if (answers.front().get().numel() != tensor.numel()) std::puts("a tensor came back with another size");
    answers.pop_front();
  }
  return kTensors * kMiB / std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

int main(int argc, char**) {
  if (argc > 100) return paceline::run([](paceline::Worker&) {}).exit_code();  // Never: links the library as jobs do.
  const auto stages = paceline::create_many<Stage>({.count = 3});
  rate(stages, 1);  // Processes start, memory is taken.
  for (const int under_way : {1, 4}) std::printf("%d under way: %.0f MiB/s\n", under_way, rate(stages, under_way));
}
