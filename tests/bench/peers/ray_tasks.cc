// Ray's microbenchmarks by its C++ API, for figures.py peers; the same work as `paceline bench NAME...`.
//   ray_tasks SECONDS NAME...     prints {"name": ..., "per_second": ...} for each that it has
// Ray wants it twice, as the program and as a shared object that its workers load; measure/peers.py builds both.
#include <ray/api.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

std::string small_value() { return "ok"; }
RAY_REMOTE(small_value);

class Server {
 public:
  static Server* make() { return new Server; }
  std::string small_value() { return "ok"; }
};
RAY_REMOTE(Server::make, &Server::small_value);

namespace {

using Results = std::vector<ray::ObjectRef<std::string>>;
/// A lot of work in that share of its full size; how much it was.
using Lot = std::function<double(double share)>;

template <class Submit>
Results submitted(int count, Submit submit) {
  Results results;
  for (int i = 0; i < count; ++i) results.push_back(submit());
  return results;
}

template <class Submit>
double all_at_once(int count, Submit submit) {
  return static_cast<double>(ray::Get(submitted(count, submit)).size());
}

auto task() { return ray::Task(small_value).Remote(); }

double wait_for_each(Results waiting) {
  while (!waiting.empty()) {
    auto unready = ray::Wait(waiting, 1, -1).unready;
    waiting.assign(unready.begin(), unready.end());
  }
  return 1;
}

double many_actors(int count) {
  std::vector<ray::ActorHandle<Server>> servers;
  for (int i = 0; i < count; ++i) servers.push_back(ray::Actor(Server::make).Remote());
  Results results;
  for (auto& server : servers) results.push_back(server.Task(&Server::small_value).Remote());
  ray::Get(results);
  for (auto& server : servers) server.Kill();
  return count;
}

/// Copied with its lot; ends with the process.
struct Kept {
  ray::ActorHandle<Server> handle = ray::Actor(Server::make).Remote();
};

Lot lot_of(const std::string& name) {
  if (name == "single_client_tasks_sync")
    return [](double) {
      ray::Get(task());
      return 1.0;
    };
  if (name == "single_client_tasks_async")
    return [](double share) { return all_at_once(static_cast<int>(1000 * share), task); };
  if (name == "many_tasks")
    return [](double share) { return all_at_once(static_cast<int>(2'500 * share), task); };  // As ray_tasks.py.
  if (name == "single_client_wait_1k_refs")
    return [](double share) { return share * wait_for_each(submitted(static_cast<int>(1000 * share), task)); };
  if (name == "many_actors") return [](double share) { return many_actors(static_cast<int>(40 * share)); };
  if (name == "1_1_actor_calls_sync")
    return [server = Kept()](double) mutable {
      ray::Get(server.handle.Task(&Server::small_value).Remote());
      return 1.0;
    };
  if (name == "1_1_actor_calls_async")
    return [server = Kept()](double share) mutable {
      return all_at_once(static_cast<int>(1000 * share),
                         [&] { return server.handle.Task(&Server::small_value).Remote(); });
    };
  return nullptr;
}

/// Operations a second, of lots of full size until the time is up.
double rate(const Lot& lot, double seconds) {
  using Clock = std::chrono::steady_clock;
  lot(0.1);  // Workers are there.
  const auto begin = Clock::now();
  double done = 0, passed = 0;
  while (passed < seconds) {
    done += lot(1);
    passed = std::chrono::duration<double>(Clock::now() - begin).count();
  }
  return done / passed;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  ray::RayConfig config;
  config.code_search_path = {std::string(argv[0]) + ".so"};
  config.head_args = {"--include-dashboard=false"};
  ray::Init(config);
  for (int i = 2; i < argc; ++i) {
    const Lot lot = lot_of(argv[i]);
    if (!lot) continue;
    std::printf("{\"name\": \"%s\", \"per_second\": %.3f}\n", argv[i], rate(lot, std::atof(argv[1])));
    std::fflush(stdout);
  }
  ray::Shutdown();
}
