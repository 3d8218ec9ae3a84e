// The main job, examples/fashion_mnist.cpp, at the learning rate that is named instead of its own:
//   paceline run tests/bench/main_job.cpp [flags] -- RATE
#include <paceline/train.h>

#include <cstdlib>

namespace {

double learning_rate = 0;

// Workers never run main: they get the argument here, as glibc hands it to constructors.
__attribute__((constructor)) void read_rate(int argc, char** argv) {
  if (argc > 1) learning_rate = std::atof(argv[argc - 1]);
}

}  // namespace

#define SGDOptions(its_own) SGDOptions(learning_rate)
#include "examples/fashion_mnist.cpp"
