// One loop, run by plain libtorch, as a job, and under torch's DistributedDataParallel.
//   training_loop plain MODEL STEPS PROCESSES     prints samples/s of all processes together, which do not know of each
//   training_loop ddp MODEL STEPS PROCESSES       other; and which average by DDP (where gloo's headers were found)
//   paceline run training_loop -- job MODEL STEPS PROCESSES    under allreduce: each has a metric
//   `steady_samples_per_s`
// MODEL: nine, tiny, small, large (loop.h). Timed are the last three quarters of the steps.
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <numeric>

#include "tests/bench/loop.h"

namespace {

std::string model = "small";
long steps = 1000;

void train(paceline::Worker& me) {
  auto net = bench::make_net(model);
  torch::optim::SGD optimizer(net->parameters(), bench::sgd());
  auto shared = me.share(net, optimizer);
  auto batches = me.batches(bench::dataset(model));
  bench::Meter meter(steps);
  while (me.next()) {
    auto [x, y] = batches.next();
    optimizer.zero_grad();
    auto loss = bench::loss_of(model, net->forward(x), y);
    loss.backward();
    shared.step(loss);
    meter.step();
  }
  me.log("steady_samples_per_s", meter.samples_per_s());
}

/// What processes share that run side by side.
struct Side {
  pthread_barrier_t barrier;
  double samples_per_s[64];
};

double train_plain(int rank, Side& side) {
  torch::set_num_threads(1);
  torch::manual_seed(1);
  std::srand(static_cast<unsigned>(rank + 1));
  bench::Batches batches(model);
  auto net = bench::make_net(model);
  torch::optim::SGD optimizer(net->parameters(), bench::sgd());
  bench::Meter meter(steps);
  for (long step = 0; step < steps; ++step) {
    if (meter.is_next_timed()) pthread_barrier_wait(&side.barrier);
    auto [x, y] = batches.next();
    optimizer.zero_grad();
    auto loss = bench::loss_of(model, net->forward(x), y);
    loss.backward();
    optimizer.step();
    (void)loss.item<double>();  // So does every loop that prints its loss; ours looks whether it is a number.
    meter.step();
  }
  return meter.samples_per_s();
}

double train_ddp([[maybe_unused]] int rank, [[maybe_unused]] int processes, [[maybe_unused]] const std::string& path) {
#ifdef PACELINE_BENCH_GLOO
  return bench::train_with_ddp(model, steps, rank, processes, path);
#else
  return 0;
#endif
}

/// Sum of what `body` returns in `processes` forked ones; 0 if one of them failed.
double on_processes(int processes, const std::function<double(int, Side&)>& body) {
  auto& side =
      *static_cast<Side*>(mmap(nullptr, sizeof(Side), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  pthread_barrierattr_t shared;
  pthread_barrierattr_init(&shared);
  pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
  pthread_barrier_init(&side.barrier, &shared, static_cast<unsigned>(processes));
  for (int rank = 0; rank < processes; ++rank) {
    if (fork() != 0) continue;
    side.samples_per_s[rank] = body(rank, side);
    _exit(0);
  }
  bool failed = false;
  for (int status = 0; wait(&status) > 0;) failed = failed || status != 0;
  return failed ? 0 : std::accumulate(side.samples_per_s, side.samples_per_s + processes, 0.0);
}

// Workers never run main: they get the arguments here, as glibc hands them to constructors.
__attribute__((constructor)) void read_arguments(int argc, char** argv) {
  if (argc < 4) return;
  model = argv[2];
  steps = std::atol(argv[3]);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string how = argc > 1 ? argv[1] : "";
  const int processes = argc > 4 ? std::atoi(argv[4]) : 0;
  if (steps < 4 || processes < 1 || processes > 64) {
    std::fprintf(stderr, "usage: training_loop plain|ddp|job nine|tiny|small|large STEPS PROCESSES\n");
    return 2;
  }
  if (how == "job") {
    const double epochs = static_cast<double>(steps * bench::kBatch * processes) / (model == "nine" ? 4096 : 60000);
    return paceline::run(train, {.workers = processes,
                                 .strategy = "allreduce",
                                 .epochs = epochs,
                                 .batch = bench::kBatch,
                                 .evaluate_every_epochs = 0})
        .exit_code();
  }
  const std::string path = "/tmp/training_loop-" + std::to_string(getpid());
  const double rate = on_processes(processes, [&](int rank, Side& side) {
    return how == "ddp" ? train_ddp(rank, processes, path) : train_plain(rank, side);
  });
  unlink(path.c_str());
  if (rate <= 0) {
    std::fprintf(stderr, "training_loop: %s failed, or was built without gloo's headers (libgloo-dev)\n", how.c_str());
    return 1;
  }
  std::printf("%.1f\n", rate);
  return 0;
}
