// Averaging P windows on one host, the way an agent does it: publish, seal, reduce on the pool (small ones on the
// caller), deliver.
//
//   average/in_place/workers:2/bytes:104857600   every sealed buffer becomes its own result (all members wait for the
//   round) average/flip/...                             into another buffer of each window (the sealed one stays
//   readable meanwhile)
//
// Against OpenMPI: figures.py averaging.

#include <poll.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <benchmark/benchmark.h>

#include "runtime/collective/averager.h"
#include "runtime/memory/window.h"

namespace {

using paceline::collective::Averager;
using paceline::collective::Reduction;
using paceline::memory::Dtype;
using paceline::memory::Window;

template <class T>
T must(paceline::Result<T> result) {
  if (!result) {
    std::fprintf(stderr, "%s\n", result.error().text.c_str());
    std::exit(1);
  }
  return std::move(*result);
}

std::span<float> floats(const Window& window, paceline::memory::Buffer buffer) {
  const auto bytes = window.data(buffer);
  return {reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float)};
}

std::vector<Window> windows_with_data(int workers, std::uint64_t elements, std::int32_t buffers) {
  std::vector<Window> windows;
  for (int w = 0; w < workers; ++w) {
    windows.push_back(must(Window::create({.elements = elements, .dtype = Dtype::f32, .buffers = buffers})));
    for (std::int32_t b = 0; b < buffers; ++b) {
      auto data = floats(windows.back(), b);
      for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>(w + 1) + static_cast<float>(i % 1000);
    }
  }
  return windows;
}

void wait_for(Averager& averager) {
  pollfd poll_for{averager.descriptor(), POLLIN, 0};
  while (averager.completed().empty()) ::poll(&poll_for, 1, -1);
}

/// One averaging of all windows.
void average(std::vector<Window>& windows, Averager& averager, bool in_place, Reduction& reduction) {
  reduction.inputs.clear();
  reduction.outputs.clear();
  const double scale = 1.0 / static_cast<double>(windows.size());
  for (auto& window : windows) {
    window.publish(false);
    reduction.inputs.push_back(window.data(*window.seal()).data());
    const auto result = in_place ? window.begin_result_in_place() : window.begin_result();
    reduction.outputs.push_back({window.data(*result).data(), scale});
  }
  if (Averager::is_small(reduction)) {
    Averager::run_inline(reduction);
  } else {
    static const auto kWindowsOutliveIt = std::make_shared<int>();
    must(averager.submit(0, reduction, kWindowsOutliveIt).map([] { return 0; }));
    wait_for(averager);
  }
  for (auto& window : windows) {
    window.deliver();
    if (!in_place) window.unseal(Window::Unseal::recycle);
  }
}

void run(benchmark::State& state, bool in_place) {
  const int workers = static_cast<int>(state.range(0));
  const auto elements = static_cast<std::uint64_t>(state.range(1)) / sizeof(float);
  auto windows = windows_with_data(workers, elements, in_place ? 1 : 2);
  auto averager = must(Averager::create());
  Reduction reduction{.inputs = {}, .outputs = {}, .elements = elements, .dtype = Dtype::f32};
  for (auto _ : state) average(windows, *averager, in_place, reduction);
  for (const auto& window : windows) {
    const auto data = floats(window, *window.writing());
    for (std::size_t i = 0; i < data.size(); i += 997) {
      const double expected = (workers + 1) / 2.0 + static_cast<double>(i % 1000);
      if (std::abs(data[i] - expected) > 1e-3) return state.SkipWithError("a wrong average");
    }
  }
  state.SetBytesProcessed(state.iterations() * state.range(1) * workers);
}

void in_place(benchmark::State& state) { run(state, true); }
void flip(benchmark::State& state) { run(state, false); }

void sizes(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"workers", "bytes"})->UseRealTime();
  for (const std::int64_t workers : {2, 4})
    for (const std::int64_t bytes : {4 << 10, 256 << 10, 4 << 20, 100 << 20}) bench->Args({workers, bytes});
  bench->Args({8, 100 << 20});
}

BENCHMARK(in_place)->Name("average/in_place")->Apply(sizes);
BENCHMARK(flip)->Name("average/flip")->Apply(sizes);

}  // namespace

BENCHMARK_MAIN();
