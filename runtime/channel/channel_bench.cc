// A channel against what it is made of: a bare ring, a bare ping-pong on futexes, bare ZeroMQ. Two threads, messages of
// 64 bytes.
// Run: paceline_channel_bench --benchmark_enable_random_interleaving --benchmark_repetitions=9
//      --benchmark_report_aggregates_only
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <thread>

#include <benchmark/benchmark.h>

#include "runtime/base/futex.h"
#include "runtime/channel/ring_channel.h"

namespace paceline::channel {
namespace {

constexpr std::size_t kBytes = 64;
constexpr int kSpins = 1 << 20;
constexpr int kBatch = 1000;

/// The least that a ring can be: slots of one size, one counter each way, a copy in and a copy out.
struct BareRing {
  static constexpr std::uint64_t kSlots = 256;
  alignas(64) std::atomic<std::uint64_t> tail{0};
  alignas(64) std::atomic<std::uint64_t> head{0};
  alignas(64) std::array<std::array<std::byte, kBytes>, kSlots> slots;

  bool push(const std::byte* bytes) {
    const auto at = tail.load(std::memory_order_relaxed);
    if (at - head.load(std::memory_order_acquire) == kSlots) return false;
    std::memcpy(slots[at % kSlots].data(), bytes, kBytes);
    tail.store(at + 1, std::memory_order_release);
    return true;
  }
  bool pop(std::byte* bytes) {
    const auto at = head.load(std::memory_order_relaxed);
    if (tail.load(std::memory_order_acquire) == at) return false;
    std::memcpy(bytes, slots[at % kSlots].data(), kBytes);
    head.store(at + 1, std::memory_order_release);
    return true;
  }
};

void wait_a_little(int& turns) {
  if (++turns % 64 == 0) std::this_thread::yield();
  spin_pause();
}

void pipelined_bare_ring(benchmark::State& state) {
  auto ring = std::make_unique<BareRing>();
  std::atomic<bool> done = false;
  std::thread reader([&] {
    std::array<std::byte, kBytes> bytes;
    for (int turns = 0; !done;) {
      if (ring->pop(bytes.data())) {
        benchmark::DoNotOptimize(bytes);
      } else {
        wait_a_little(turns);
      }
    }
  });
  std::array<std::byte, kBytes> bytes{};
  int turns = 0;
  for (auto _ : state)
    for (int i = 0; i < kBatch; ++i)
      while (!ring->push(bytes.data())) wait_a_little(turns);
  done = true;
  reader.join();
  state.SetItemsProcessed(state.iterations() * kBatch);
}

struct Ends {
  std::unique_ptr<RingChannel> here = RingChannel::create({}).value();
  std::unique_ptr<RingChannel> there = [this] {
    std::vector<process::Fd> fds;
    for (const auto fd : here->descriptors()) fds.push_back(fd.duplicate());
    return RingChannel::open(std::move(fds)).value();
  }();
};

void pipelined_channel(benchmark::State& state) {
  Ends ends;
  std::thread reader([&] {
    ends.there->set_spins(kSpins);
    Message message;
    do {
      (void)ends.there->receive(message, Duration(-1));
    } while (!message[0].empty());
  });
  ends.here->set_spins(kSpins);
  const Message message{Frame(kBytes)};
  for (auto _ : state)
    for (int i = 0; i < kBatch; ++i) (void)ends.here->send(message, Duration(-1));
  (void)ends.here->send(Message{Frame()}, Duration(-1));
  reader.join();
  state.SetItemsProcessed(state.iterations() * kBatch);
}

/// Both ends on one thread: what a message costs where no cache line travels.
void one_thread_bare_ring(benchmark::State& state) {
  auto ring = std::make_unique<BareRing>();
  std::array<std::byte, kBytes> bytes{};
  for (auto _ : state) {
    ring->push(bytes.data());
    ring->pop(bytes.data());
    benchmark::DoNotOptimize(bytes);
  }
}

void one_thread_channel(benchmark::State& state) {
  Ends ends;
  const Message message{Frame(kBytes)};
  Message received;
  for (auto _ : state) {
    (void)ends.here->send(message, Duration::zero());
    (void)ends.there->receive(received, Duration(-1));
  }
}

/// One after the other; `spins`: how often a side looks before it sleeps.
void ping_pong_bare(benchmark::State& state) {
  const auto spins = static_cast<int>(state.range(0));
  std::atomic<std::uint32_t> ping{0}, pong{0};
  const auto wait = [spins](std::atomic<std::uint32_t>& word, std::uint32_t seen) {
    for (int i = 0; i < spins; ++i) {
      if (word.load(std::memory_order_acquire) != seen) return;
      spin_pause();
    }
    while (word.load(std::memory_order_acquire) == seen) futex_wait(word, seen, Duration(-1));
  };
  const auto ring = [spins](std::atomic<std::uint32_t>& word, std::uint32_t value) {
    word.store(value, std::memory_order_release);
    if (spins == 0) futex_wake(word, 1);
  };
  std::thread other([&] {
    for (std::uint32_t seen = 0;; ++seen) {
      wait(ping, seen);
      const bool last = ping.load() == 0xffffffff;
      ring(pong, seen + 1);
      if (last) return;
    }
  });
  std::uint32_t round = 0;
  for (auto _ : state) {
    ring(ping, round + 1);
    wait(pong, round);
    ++round;
  }
  ring(ping, 0xffffffff);
  other.join();
}

void ping_pong_channel(benchmark::State& state) {
  const auto spins = static_cast<int>(state.range(0));
  Ends ends;
  ends.here->set_spins(spins);
  std::thread other([&] {
    ends.there->set_spins(spins);
    Message message;
    do {
      (void)ends.there->receive(message, Duration(-1));
      (void)ends.there->send(message, Duration(-1));
    } while (!message[0].empty());
  });
  const Message message{Frame(kBytes)};
  Message answer;
  for (auto _ : state) {
    (void)ends.here->send(message, Duration(-1));
    (void)ends.here->receive(answer, Duration(-1));
  }
  (void)ends.here->send(Message{Frame()}, Duration(-1));
  other.join();
}

BENCHMARK(pipelined_bare_ring)->UseRealTime();
BENCHMARK(pipelined_channel)->UseRealTime();
BENCHMARK(one_thread_bare_ring);
BENCHMARK(one_thread_channel);
BENCHMARK(ping_pong_bare)->ArgName("spins")->Arg(0)->Arg(kSpins)->UseRealTime();
BENCHMARK(ping_pong_channel)->ArgName("spins")->Arg(0)->Arg(kSpins)->UseRealTime();

}  // namespace
}  // namespace paceline::channel

BENCHMARK_MAIN();
