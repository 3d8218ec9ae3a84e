// Time from the request until all of N workers are forked and reported with pidfd and socket.
#include <benchmark/benchmark.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "runtime/base/test_directory.h"
#include "runtime/process/fork_server.h"
#include "runtime/process/supervise.h"

using namespace paceline;
using namespace paceline::process;

namespace {

void wait_events(ForkServer& server, std::vector<ForkServer::Event>& all) {
  pollfd waiting{server.descriptor(), POLLIN, 0};
  ::poll(&waiting, 1, -1);
  for (auto& event : server.events()) all.push_back(std::move(event));
}

void fork_workers(benchmark::State& state) {
  const test::TestDirectory directory;
  auto server = ForkServer::start(
      {.executable = PACELINE_FORK_TEST_SCRIPT, .args = {}, .env = {}, .log_path = directory.path / "server.log"});
  if (!server) return state.SkipWithError(server.error().text.c_str());
  std::uint64_t next = 0;
  const auto round = [&]() -> void {
    const auto count = static_cast<std::size_t>(state.range(0));
    std::vector<ForkServer::Event> events;
    for (std::size_t i = 0; i < count; ++i)
      if (const auto asked =
              server->fork({.worker = WorkerId(next++), .log_path = directory.path / "worker.log", .env = {}});
          !asked)
        return state.SkipWithError(asked.error().text.c_str());
    while (events.size() < count) wait_events(*server, events);
    state.PauseTiming();
    for (const auto& event : events) (void)kill_worker(event.pidfd, SIGKILL);
    while (events.size() < 2 * count) wait_events(*server, events);
    state.ResumeTiming();
  };
  for (auto _ : state) round();
}
BENCHMARK(fork_workers)->Arg(1)->Arg(8)->Arg(32)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
