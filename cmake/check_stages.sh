#!/bin/sh
# Sourced by ./check after cmake/common.sh: what it does beside building and testing the release.

# A Python that has what tests read runs with and Debian does not have; tests/integration/checkpoint_test.py finds it.
test_python() {
  [ -x build/python/bin/pip ] || python3 -m venv build/python || return 1
  build/python/bin/python -c 'import safetensors.numpy' 2>/dev/null || build/python/bin/pip install -q safetensors numpy
}

# run_tests PRESET [OPTION...]: ctest. A skipped test is none that passed: it is named with its reason, and fails where CI is set.
run_tests() {
  ctest --preset "$@"
  status=$?
  grep '^skipped: ' "build/$1/Testing/Temporary/LastTest.log" || true
  return $status
}

not_run=""

# Compiles the CUDA parts where there is a toolkit, and runs their test where there is a device, too.
cuda_parts() {
  if [ ! -x /usr/local/cuda/bin/nvcc ] && ! command -v nvcc >/dev/null; then
    not_run="$not_run
  CUDA parts were not compiled: there is no CUDA toolkit here"
    return 0
  fi
  configure cuda -DPACELINE_TRAIN=OFF && build cuda paceline_gpu_test || return 1
  if [ -e /dev/nvidiactl ]; then
    build/cuda/tests/gpu/paceline_gpu_test
  else
    not_run="$not_run
  CUDA parts were compiled, and not run: there is no CUDA device here"
  fi
}

# A second libtorch, the newest wheel of PyPI (1.3 GB in build/), as a user would have it: from an environment of Python's.
# Builds the product with it and runs the tests of training.
torch_wheel() (
  environment=$PWD/build/torch-python
  [ -x "$environment/bin/pip" ] || python3 -m venv "$environment" || return 1
  "$environment/bin/pip" install -q --no-deps torch nvidia-cuda-runtime nvidia-cuda-cupti || return 1
  PATH=$environment/bin:$PATH
  configure wheel || return 1
  grep '^-- libtorch .* (wheel)' build/configure-wheel.log || { echo "the wheel was not chosen" >&2; return 1; }
  build wheel product training_cases paceline_train_test &&
    ctest --preset wheel --tests-regex '^(paceline_train_test|training_cases|training_runs|training_nodes|strategy_training)$'
)
