// The job of tests/bench/recovery.py under Paceline; recovery_job.py says what it is. Argument: the folder for what the
// workers note.
#include <paceline.h>
#include <paceline/train.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <fstream>
#include <string>
#include <thread>

namespace {

constexpr std::int64_t kElements = 6'250'000;  // Float32: 25 MB.
constexpr std::int64_t kSamples = 4'000'000;   // More than a run uses: one epoch.
constexpr auto kComputing = std::chrono::milliseconds(100);

struct VectorImpl : torch::nn::Module {
  VectorImpl() : weight(register_parameter("weight", torch::zeros({kElements}))) {}
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

void train(paceline::Worker& me, const std::string& folder) {
  Vector net;
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
    std::this_thread::sleep_for(kComputing);
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
                       std::string(argc > 1 ? argv[1] : "."))
      .exit_code();
}
