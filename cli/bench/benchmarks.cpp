// The script of `paceline bench`: Ray's microbenchmarks, defined as there.
//   benchmarks json|table SECONDS ROUNDS NAME...
#include <paceline.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "benchmarks.h"
#include "measure.h"

namespace {

using paceline::Future;
using paceline::Handle;

/// Does some work, and says how many operations that was.
using Lot = std::function<long()>;

/// What all tasks and calls return.
std::string small_value() { return "ok"; }

class Server {
 public:
  std::string small_value() { return "ok"; }
};
using Servers = std::vector<Handle<Server>>;

class CoroutineServer {
 public:
  paceline::Async<std::string> small_value() { co_return "ok"; }
};

/// `count` tasks or calls, then all results.
template <class Submit>
long all_at_once(int count, Submit submit) {
  std::vector<Future<std::string>> results;
  results.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) results.push_back(submit(i));
  for (const auto& result : results) result.get();
  return count;
}

long call_in_turn(const Servers& servers, int calls) {
  return all_at_once(
      calls, [&](int i) { return servers[static_cast<std::size_t>(i) % servers.size()].call(&Server::small_value); });
}

/// A client in a process of its own.
class Client {
 public:
  long tasks(int count) {
    return all_at_once(count, [](int) { return paceline::async(small_value); });
  }
  long calls(const Servers& servers, int of_each) {
    std::vector<Future<std::string>> results;
    for (const auto& server : servers)
      for (int i = 0; i < of_each; ++i) results.push_back(server.call(&Server::small_value));
    for (const auto& result : results) result.get();
    return static_cast<long>(results.size());
  }
};

long sum_of(const std::vector<Future<long>>& counts) {
  long sum = 0;
  for (const auto& count : counts) sum += count.get();
  return sum;
}

/// One for every two cores, as Ray's have it.
Servers servers_for_cores() {
  const unsigned cores = std::thread::hardware_concurrency();
  return paceline::create_many<Server>({.count = cores < 4 ? 1 : static_cast<int>(cores / 2)});
}

Lot tasks_sync() {
  return [] {
    paceline::async(small_value).get();
    return 1L;
  };
}

Lot tasks_async(int count) {
  return [count] { return all_at_once(count, [](int) { return paceline::async(small_value); }); };
}

Lot multi_client_tasks(int count) {
  return [clients = paceline::create_many<Client>({.count = 4}), count] {
    std::vector<Future<long>> counts;
    for (const auto& client : clients) counts.push_back(client.call(&Client::tasks, count));
    return sum_of(counts);
  };
}

template <class T>
Lot calls_sync() {
  return [server = paceline::create<T>()] {
    server.call(&T::small_value).get();
    return 1L;
  };
}

template <class T>
Lot calls_async(int count) {
  return [server = paceline::create<T>(), count] {
    return all_at_once(count, [&](int) { return server.call(&T::small_value); });
  };
}

Lot calls_1_n(int of_each) {
  return [client = paceline::create<Client>(), servers = servers_for_cores(), of_each] {
    return client.call(&Client::calls, servers, of_each).get();
  };
}

Lot calls_n_n(int calls) {
  return [servers = servers_for_cores(), calls] {
    std::vector<Future<long>> counts;
    for (int client = 0; client < 4; ++client) counts.push_back(paceline::async(call_in_turn, servers, calls));
    return sum_of(counts);
  };
}

Lot wait_for_each(int count) {
  return [count] {
    std::vector<Future<std::string>> waiting;
    for (int i = 0; i < count; ++i) waiting.push_back(paceline::async(small_value));
    while (!waiting.empty()) waiting = paceline::wait(std::move(waiting)).pending;
    return 1L;
  };
}

Lot many_actors(int count) {
  return [count] {
    const auto actors = paceline::create_many<Server>({.count = count});
    return call_in_turn(actors, count);
  };
}

/// Its actors end with it. Empty: there is none of that name.
Lot lot_of(std::string_view name, double seconds) {
  const auto size = [seconds](int full) { return paceline::bench::lot_size(full, seconds); };
  if (name == "single_client_tasks_sync") return tasks_sync();
  if (name == "single_client_tasks_async") return tasks_async(1000);
  if (name == "multi_client_tasks_async") return multi_client_tasks(size(10'000));
  if (name == "many_tasks") return tasks_async(size(10'000));
  if (name == "1_1_actor_calls_sync") return calls_sync<Server>();
  if (name == "1_1_actor_calls_async") return calls_async<Server>(1000);
  if (name == "1_1_async_actor_calls_sync") return calls_sync<CoroutineServer>();
  if (name == "1_1_async_actor_calls_async") return calls_async<CoroutineServer>(1000);
  if (name == "1_n_actor_calls_async") return calls_1_n(size(5000));
  if (name == "n_n_actor_calls_async") return calls_n_n(size(5000));
  if (name == "single_client_wait_1k_refs") return wait_for_each(1000);
  if (name == "many_actors") return many_actors(size(40));
  return nullptr;
}

/// Which one is under way: on a terminal a line that goes again, else one that stays.
class Progress {
 public:
  Progress(int number, int all, const char* name) {
    std::fprintf(stderr, terminal_ ? "\r\033[K%d of %d: %s" : "%d of %d: %s\n", number, all, name);
    std::fflush(stderr);
  }
  ~Progress() {
    if (terminal_) std::fputs("\r\033[K", stderr);
  }

 private:
  const bool terminal_ = isatty(STDERR_FILENO) == 1;
};

paceline::bench::Summary measured(const char* name, double seconds, int rounds) {
  Lot lot = lot_of(name, seconds);
  if (!lot) throw paceline::TaskError({paceline::ErrorKind::not_found, "there is no such benchmark"});
  return paceline::bench::measure(seconds, rounds, std::move(lot));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  const bool json = std::string_view(argv[1]) == "json";
  const double seconds = std::atof(argv[2]);
  const int rounds = std::atoi(argv[3]);
  std::size_t width = 0;
  for (const auto& benchmark : paceline::bench::kBenchmarks)
    width = std::max(width, std::string_view(benchmark.name).size());
  if (!json) std::printf("%-*s  %12s  %6s\n", static_cast<int>(width), "benchmark", "per second", "spread");
  for (int i = 4; i < argc; ++i) {
    try {
      const auto found = [&] {
        const Progress progress(i - 3, argc - 4, argv[i]);
        return measured(argv[i], seconds, rounds);
      }();
      const int digits = found.per_second < 1000 ? 1 : 0;
      if (json) {
        std::printf("{\"name\": \"%s\", \"per_second\": %.*f, \"spread\": %.3f}\n", argv[i], digits, found.per_second,
                    found.spread);
      } else {
        std::printf("%-*s  %12.*f  %4.0f %%\n", static_cast<int>(width), argv[i], digits, found.per_second,
                    100 * found.spread);
      }
      std::fflush(stdout);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "paceline: bench %s: %s\n", argv[i], error.what());
      return 1;
    }
  }
}
