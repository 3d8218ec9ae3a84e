// The job of tests/bench/recovery.py under Paceline; recovery_job.py says what it is. Arguments: the folder for what
// the workers note; numbers of the model, and milliseconds of a step, if they are others.
#include <paceline.h>
#include <paceline/train.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

namespace {

constexpr std::int64_t kSamples = 4'000'000;  // More than a run uses: one epoch.

struct VectorImpl : torch::nn::Module {
  explicit VectorImpl(std::int64_t elements) : weight(register_parameter("weight", torch::zeros({elements}))) {}
  torch::Tensor weight;
};
TORCH_MODULE(Vector);

class Notes {
 public:
  Notes(const std::string& folder, int worker)
      : file_(folder + "/worker-" + std::to_string(worker) + ".jsonl", std::ios::app), worker_(worker) {}
  void note(const char* event, std::int64_t step, std::int64_t samples) {
    const std::chrono::duration<double> now = std::chrono::steady_clock::now().time_since_epoch();
    const auto time = std::to_string(now.count());
    file_ << "{\"event\": \"" << event << "\", \"worker\": " << worker_ << ", \"pid\": " << getpid()
          << ", \"step\": " << step << ", \"time\": " << time << ", \"samples\": " << samples << "}" << std::endl;
  }

 private:
  std::ofstream file_;
  int worker_;
};

void train(paceline::Worker& me, const std::string& folder, std::int64_t elements, std::int64_t step_ms) {
  Vector net(elements);
  torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(0.001));
  auto shared = me.share(net, optimizer);
  auto batches = me.batches(paceline::tensors(torch::ones({kSamples}), torch::zeros({kSamples})));
  Notes notes(folder, me.rank());
  std::int64_t enough = INT64_MAX;
  while (me.next()) {
    const auto step = me.update();
    std::ifstream(folder + "/enough") >> enough;
    if (step >= enough) me.stop("enough");
    const auto batch = batches.next();
    std::this_thread::sleep_for(std::chrono::milliseconds(step_ms));
    optimizer.zero_grad();
    const auto loss = net->weight.sum() * batch.data.mean();
    loss.backward();
    notes.note("computed", step, me.batch());
    shared.step(loss);
    notes.note("committed", step, me.batch());
  }
}

}  // namespace

int main(int argc, char** argv) {
  return paceline::run(train, {.workers = 4, .epochs = 1, .batch = 32, .evaluate_every_epochs = 0},
                       std::string(argc > 1 ? argv[1] : "."), argc > 2 ? std::atoll(argv[2]) : 6'250'000,  // 25 MB.
                       argc > 3 ? std::atoll(argv[3]) : 100)
      .exit_code();
}
