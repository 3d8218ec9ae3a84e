// What it costs a worker's call to be written down: the same call without and with it.
#include <benchmark/benchmark.h>

#include "actors/spans/span_writer.h"
#include "actors/worker/executor.h"

namespace paceline::actors {
namespace {

class Counter {
 public:
  int add(int k) { return n_ += k; }

 private:
  int n_ = 0;
};

void call_of_an_actor(benchmark::State& state, bool written, const std::string& task_name) {
  const auto book = *SpanBook::create();
  worker::Executor executor([] { return Place{0, "worker 1", ""}; }, {}, written ? book.get() : nullptr);
  CreateActor create;
  create.actor = ActorId{5};
  create.owner = "driver/4711-2862872482";
  create.function = *name_of(&run_constructor<Counter, std::tuple<>>);
  (void)executor.construct(create);
  Call call;
  call.task = TaskId{1};
  call.actor = ActorId{5};
  call.owner = create.owner;
  call.name = task_name;
  call.function = *name_of(&run_method<Counter, int (Counter::*)(int), std::tuple<int>>);
  auto method = *name_of(&Counter::add);
  method.function.build.clear();
  call.arguments = {to_bytes(method), to_bytes(1)};
  for (auto _ : state) {
    ++call.task.value;
    benchmark::DoNotOptimize(executor.call(call));
  }
}

void written(benchmark::State& state) {
  const auto book = *SpanBook::create();
  SpanTrack track(*book);
  Call call;
  call.owner = "driver/4711-2862872482";
  const auto first = to_bytes(*name_of(&Counter::add));
  std::int64_t ns = 1;
  for (auto _ : state) {
    ++call.task.value;
    track.begin(call, Instant(Duration(ns++)));
    track.begins(kMethodOf<Counter>, first, "");
    track.end(Instant(Duration(ns++)), false);
  }
}

BENCHMARK_CAPTURE(call_of_an_actor, not_written, false, "");
BENCHMARK_CAPTURE(call_of_an_actor, written, true, "");
BENCHMARK_CAPTURE(call_of_an_actor, written_by_name, true, "one step");
BENCHMARK(written);

}  // namespace
}  // namespace paceline::actors

BENCHMARK_MAIN();
