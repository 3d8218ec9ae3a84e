// A link between two endpoints over ZeroMQ's tcp (trusted, i.e. without CURVE) against a bare TCP stream, both through
// the loopback device, from one thread to another. Messages are counted when they are whole in memory of their own;
// the sender's memory is given back when they have gone.
// Run: PACELINE_BENCH_LARGE=1 paceline_link_bench --benchmark_enable_random_interleaving --benchmark_repetitions=9
//      --benchmark_report_aggregates_only
// Sizes beyond 64 MiB only with PACELINE_BENCH_LARGE, and where there is memory for both ends.
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <benchmark/benchmark.h>

#include "runtime/base/steady_now.h"
#include "runtime/link/link_transport.h"
#include "runtime/transport/zmq/zmq_transport.h"

namespace paceline::link {
namespace {

using namespace std::chrono_literals;
using transport::Event;

/// Small messages are sent many at a time: it is a rate that is measured.
std::size_t batch_of(std::size_t bytes) { return std::max<std::size_t>(1, (std::size_t{64} << 20) / bytes); }

bool has_memory_for(std::size_t bytes) {
  std::ifstream file("/proc/meminfo");
  std::string name;
  std::size_t kilobytes = 0;
  while (file >> name >> kilobytes && name != "MemAvailable:") file.ignore(100, '\n');
  return kilobytes / 1024 * 2 / 3 > (2 * bytes) >> 20;
}

/// What counts the bytes that have come, whole messages only.
struct Arrivals {
  std::atomic<std::uint64_t> bytes = 0;
  std::atomic<bool> is_over = false;
};

/// A connected pair of TCP sockets on the loopback device, set as they come.
std::pair<int, int> stream() {
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof name;
  auto* const address = reinterpret_cast<sockaddr*>(&name);
  if (::bind(listener, address, size) != 0 || ::listen(listener, 1) != 0 ||
      ::getsockname(listener, address, &size) != 0)
    std::abort();
  const int from = ::socket(AF_INET, SOCK_STREAM, 0);
  if (::connect(from, address, size) != 0) std::abort();
  const int to = ::accept(listener, nullptr, nullptr);
  ::close(listener);
  return {from, to};
}

void bare_tcp(benchmark::State& state) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  if (!has_memory_for(bytes)) return state.SkipWithError("not enough memory");
  const std::size_t batch = batch_of(bytes);
  const auto [from, to] = stream();
  Arrivals arrivals;
  std::thread reader([&, to = to] {
    while (true) {
      const auto free_it = [](std::byte* memory) { std::free(memory); };
      const std::unique_ptr<std::byte, decltype(free_it)> memory(static_cast<std::byte*>(std::malloc(bytes)), free_it);
      for (std::size_t have = 0; have < bytes;) {
        const auto count = ::recv(to, memory.get() + have, bytes - have, 0);
        if (count <= 0) return;
        have += static_cast<std::size_t>(count);
      }
      arrivals.bytes += bytes;
      arrivals.bytes.notify_one();
    }
  });
  std::uint64_t sent = 0;
  for (auto _ : state) {
    std::vector<Frame> messages(batch);
    for (Frame& message : messages) message.assign(bytes, std::byte{1});
    const Instant begin = steady_now();
    for (Frame& message : messages) {
      for (std::size_t gone = 0; gone < bytes;)
        gone += static_cast<std::size_t>(::send(from, message.data() + gone, bytes - gone, 0));
      Frame().swap(message);
    }
    sent += batch * bytes;
    for (auto have = arrivals.bytes.load(); have < sent; have = arrivals.bytes.load()) arrivals.bytes.wait(have);
    state.SetIterationTime(seconds(steady_now() - begin));
  }
  ::close(from);
  reader.join();
  ::close(to);
  state.SetBytesProcessed(static_cast<std::int64_t>(sent));
}

std::unique_ptr<LinkTransport> open(const char* name) {
  transport::ZmqOptions below;
  below.self = name;
  below.trusted = true;
  below.links = true;
  LinkTransport::Options options;
  options.heartbeat_every = 5ms;  // So that there are many to measure.
  return std::make_unique<LinkTransport>(*transport::ZmqTransport::create(std::move(below)), std::move(options));
}

void link(benchmark::State& state) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  if (!has_memory_for(bytes)) return state.SkipWithError("not enough memory");
  const std::size_t batch = batch_of(bytes);
  auto from = open("from");
  const std::string address = *from->listen("tcp://127.0.0.1:*");
  Arrivals arrivals;
  std::thread reader([&] {
    auto to = open("to");
    (void)to->connect("from", address);
    while (!arrivals.is_over) {
      const auto event = to->poll(10ms);
      if (!event || event->kind != Event::Kind::message) continue;
      arrivals.bytes += event->frames[1].size();
    }
  });
  while (from->link("to") == nullptr || !from->link("to")->is_open()) (void)from->poll(10ms);
  from->depends_on("to", true);
  std::uint64_t sent = 0;
  Duration worst{};
  for (auto _ : state) {
    std::vector<std::vector<Frame>> messages(batch);
    for (auto& message : messages) message = {Frame(64, std::byte{1}), Frame(bytes, std::byte{1})};
    while (from->poll(20ms)) {  // Heartbeats stood still meanwhile.
    }
    const Instant begin = steady_now();
    for (auto& message : messages) (void)from->send("to", std::move(message));
    sent += batch * bytes;
    while (arrivals.bytes < sent) {
      (void)from->poll(200us);
      worst = std::max(worst, from->link("to")->round_trip().value_or(0ns));
    }
    state.SetIterationTime(seconds(steady_now() - begin));
  }
  arrivals.is_over = true;
  reader.join();
  state.SetBytesProcessed(static_cast<std::int64_t>(sent));
  state.counters["heartbeat_ms"] = seconds(worst) * 1e3;
  state.counters["window_MiB"] =
      static_cast<double>(from->link("to") ? from->link("to")->outbox().window_bytes() >> 20 : 0);
}

void sizes(benchmark::internal::Benchmark* benchmark) {
  for (const int shift : {16, 20, 24, 26}) benchmark->Arg(std::int64_t{1} << shift);
  if (std::getenv("PACELINE_BENCH_LARGE") != nullptr)
    for (const int shift : {28, 30, 32}) benchmark->Arg(std::int64_t{1} << shift);
  benchmark->ArgName("bytes")->UseManualTime()->Unit(benchmark::kMillisecond);
}

BENCHMARK(bare_tcp)->Apply(sizes);
BENCHMARK(link)->Apply(sizes);

}  // namespace
}  // namespace paceline::link

BENCHMARK_MAIN();
