// ZmqTransport against bare ZeroMQ (a DEALER and a ROUTER), over ipc between two threads with a context each.
// Run: transport_bench --benchmark_enable_random_interleaving --benchmark_repetitions=9
// --benchmark_report_aggregates_only

#include <atomic>
#include <cstring>
#include <thread>

#include <benchmark/benchmark.h>

#include "runtime/base/test_directory.h"
#include "runtime/transport/zmq/bare_sockets_test_support.h"
#include "runtime/transport/zmq/zmq_transport.h"

namespace paceline::transport {
namespace {

using namespace std::chrono_literals;
using test::BareSocket;
using test::TestDirectory;

/// One in `batch` messages is answered: 1 is a round trip each, more is a pipeline.
void bare_zeromq(benchmark::State& state) {
  const auto batch = static_cast<std::size_t>(state.range(0));
  const auto size = static_cast<std::size_t>(state.range(1));
  TestDirectory directory;
  std::atomic<bool> listening = false;
  std::thread server([&] {
    auto bare = BareSocket::router(directory.ipc("a"));
    auto& router = bare.socket;
    listening = true;
    for (std::size_t count = 0;;) {
      zmq::message_t route, body;
      (void)router.recv(route);
      (void)router.recv(body);
      if (body.size() == 1) break;
      if (++count % batch != 0) continue;
      router.send(route, zmq::send_flags::sndmore);
      router.send(body, zmq::send_flags::none);
    }
  });
  while (!listening) std::this_thread::yield();
  auto bare = BareSocket::dealer(directory.ipc("a"));
  auto& dealer = bare.socket;
  const std::string payload(size, 'x');
  for (auto _ : state) {
    for (std::size_t i = 0; i < batch; ++i) dealer.send(zmq::buffer(payload), zmq::send_flags::none);
    zmq::message_t answer;
    (void)dealer.recv(answer);
  }
  dealer.send(zmq::buffer("x", 1), zmq::send_flags::none);
  server.join();
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(batch));
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(batch * size));
}

void transport(benchmark::State& state) {
  const auto batch = static_cast<std::size_t>(state.range(0));
  const auto size = static_cast<std::size_t>(state.range(1));
  TestDirectory directory;
  std::atomic<bool> listening = false, done = false;
  std::thread server([&] {
    auto agent = ZmqTransport::create({.self = "a"}).value();
    (void)agent->listen(directory.ipc("a"));
    listening = true;
    for (std::size_t count = 0; !done;) {
      auto event = agent->poll(100ms);
      if (!event || event->kind != Event::Kind::message) continue;
      if (++count % batch == 0) (void)agent->send(event->peer, std::move(event->frames));
    }
  });
  while (!listening) std::this_thread::yield();
  auto worker = ZmqTransport::create({.self = "w"}).value();
  (void)worker->connect("a", directory.ipc("a"));
  (void)worker->poll(10s);  // Connected.
  const Frame payload(size, std::byte{1});
  for (auto _ : state) {
    for (std::size_t i = 0; i < batch; ++i) {
      while (true) {
        std::vector<Frame> frames;
        frames.push_back(payload);
        if (worker->send("a", std::move(frames))) break;
        std::this_thread::yield();  // Overloaded.
      }
    }
    while (!worker->poll(10s)) {
    }
  }
  done = true;
  server.join();
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(batch));
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(batch * size));
}

BENCHMARK(bare_zeromq)
    ->ArgNames({"batch", "bytes"})
    ->Args({1, 64})
    ->Args({1000, 64})
    ->Args({1, 4 << 20})
    ->UseRealTime();
BENCHMARK(transport)->ArgNames({"batch", "bytes"})->Args({1, 64})->Args({1000, 64})->Args({1, 4 << 20})->UseRealTime();

}  // namespace
}  // namespace paceline::transport

BENCHMARK_MAIN();
