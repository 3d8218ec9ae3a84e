// What our sockets cost: messages of a worker's session (Arrive) over the ZeroMQ way of channels, encoded, checked and
// read, against the same over a bare pair of ZeroMQ sockets with Cap'n Proto. Over ipc, between two threads.
// Run: messages_bench --benchmark_enable_random_interleaving --benchmark_repetitions=9
//      --benchmark_report_aggregates_only
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>

#include <benchmark/benchmark.h>

#include <capnp/message.h>
#include <capnp/serialize.h>

#include "runtime/base/test_directory.h"
#include "runtime/channel/zmq_channel.h"
#include "runtime/transport/zmq/bare_sockets_test_support.h"
#include "runtime/transport/zmq/zmq_transport.h"
#include "runtime/wire/codec.h"

namespace paceline {
namespace {

using namespace std::chrono_literals;
using channel::ZmqChannel;
using test::BareSocket;
using test::TestDirectory;
using transport::ZmqTransport;

constexpr std::int64_t kLast = -1;  ///< Iteration of the message that ends the other side.

void write_arrive(wire::Envelope::Builder envelope, std::int64_t iteration) {
  auto arrive = envelope.initArrive();
  arrive.setJob(1);
  arrive.setRank(3);
  arrive.setIteration(iteration);
  arrive.setComputeNs(1000);
  arrive.setLoss(0.5);
}

/// Its iteration, after everything was looked at.
std::int64_t read_arrive(const wire::Envelope::Reader& envelope) {
  const auto arrive = envelope.getArrive();
  benchmark::DoNotOptimize(arrive.getJob() + static_cast<std::uint64_t>(arrive.getRank()));
  benchmark::DoNotOptimize(arrive.getLoss() + static_cast<double>(arrive.getComputeNs()));
  return arrive.getIteration();
}

void send_bare(zmq::socket_t& socket, std::int64_t iteration, zmq::message_t* route = nullptr) {
  capnp::word scratch[32];
  std::memset(static_cast<void*>(scratch), 0, sizeof scratch);
  capnp::MallocMessageBuilder builder(kj::arrayPtr(scratch, 32));
  write_arrive(builder.initRoot<wire::Envelope>(), iteration);
  const auto words = capnp::messageToFlatArray(builder);
  if (route) (void)socket.send(*route, zmq::send_flags::sndmore);
  (void)socket.send(zmq::buffer(words.asBytes().begin(), words.asBytes().size()), zmq::send_flags::none);
}

std::int64_t receive_bare(zmq::socket_t& socket, zmq::message_t* route = nullptr) {
  zmq::message_t body;
  if (route) (void)socket.recv(*route);
  (void)socket.recv(body);
  capnp::word words[32];  // ZeroMQ aligns small ones to nothing, and Cap'n Proto wants them aligned.
  std::memcpy(static_cast<void*>(words), body.data(), std::min(body.size(), sizeof words));
  capnp::FlatArrayMessageReader reader(kj::arrayPtr(words, body.size() / sizeof(capnp::word)));
  return read_arrive(reader.getRoot<wire::Envelope>());
}

/// One in `batch` messages is answered: 1 is a round trip each, more is a pipeline.
void bare(benchmark::State& state) {
  const auto batch = state.range(0);
  TestDirectory directory;
  std::atomic<bool> listening = false;
  std::thread server([&] {
    auto bare = BareSocket::router(directory.ipc("a"));
    auto& router = bare.socket;
    listening = true;
    zmq::message_t route;
    for (std::int64_t count = 0;;) {
      const auto iteration = receive_bare(router, &route);
      if (iteration == kLast) break;
      if (++count % batch == 0) send_bare(router, iteration, &route);
    }
  });
  while (!listening) std::this_thread::yield();
  auto bare = BareSocket::dealer(directory.ipc("a"));
  auto& dealer = bare.socket;
  for (auto _ : state) {
    for (std::int64_t i = 0; i < batch; ++i) send_bare(dealer, i);
    benchmark::DoNotOptimize(receive_bare(dealer));
  }
  send_bare(dealer, kLast);
  server.join();
  state.SetItemsProcessed(state.iterations() * batch);
}

void send_ours(ZmqChannel& channel, std::int64_t iteration) {
  wire::Message message;
  write_arrive(message.root(), iteration);
  const channel::Frame frame = message.to_frame();
  if (!channel.send({&frame, 1}, Duration(-1))) std::abort();
}

std::int64_t receive_ours(ZmqChannel& channel, channel::Message& message) {
  if (!channel.receive(message, Duration(-1))) std::abort();
  std::int64_t iteration = 0;
  const auto received = wire::Received::parse(std::move(message.front()));
  if (!received || !received->visit([&](const auto& envelope) { iteration = read_arrive(envelope); })) std::abort();
  return iteration;
}

void ours(benchmark::State& state) {
  const auto batch = state.range(0);
  TestDirectory directory;
  std::atomic<bool> listening = false;
  std::thread server([&] {
    auto agent = ZmqTransport::create({.self = "agent"}).value();
    if (!agent->listen(directory.ipc("a"))) std::abort();
    listening = true;
    while (!agent->poll(10s)) {  // Connected.
    }
    ZmqChannel channel(std::move(agent), "worker");
    channel::Message message;
    for (std::int64_t count = 0;;) {
      const auto iteration = receive_ours(channel, message);
      if (iteration == kLast) break;
      if (++count % batch == 0) send_ours(channel, iteration);
    }
  });
  while (!listening) std::this_thread::yield();
  auto worker = ZmqTransport::create({.self = "worker"}).value();
  if (!worker->connect("agent", directory.ipc("a"))) std::abort();
  (void)worker->poll(10s);  // Connected.
  ZmqChannel channel(std::move(worker), "agent");
  channel::Message message;
  for (auto _ : state) {
    for (std::int64_t i = 0; i < batch; ++i) send_ours(channel, i);
    benchmark::DoNotOptimize(receive_ours(channel, message));
  }
  send_ours(channel, kLast);
  server.join();
  state.SetItemsProcessed(state.iterations() * batch);
}

BENCHMARK(bare)->ArgName("batch")->Arg(1)->Arg(1000)->UseRealTime();
BENCHMARK(ours)->ArgName("batch")->Arg(1)->Arg(1000)->UseRealTime();

}  // namespace
}  // namespace paceline

BENCHMARK_MAIN();
