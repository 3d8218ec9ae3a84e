// Calls of a remote CAF actor, over TCP between two processes of this machine, for figures.py peers.
//   caf_calls SECONDS NAME...     prints {"name": ..., "per_second": ...} for each that it has
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <caf/all.hpp>
#include <caf/io/all.hpp>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

caf::behavior server() {
  return {[](std::int32_t value) { return value; }};
}

/// The server's process: says at which port it can be reached, and lives until it is killed.
[[noreturn]] void serve(int port_pipe) {
  caf::actor_system_config config;
  config.load<caf::io::middleman>();
  caf::actor_system system(config);
  const auto port = system.middleman().publish(system.spawn(server), 0, "127.0.0.1");
  const std::uint16_t number = port ? *port : 0;
  if (write(port_pipe, &number, sizeof number) != sizeof number) std::_Exit(1);
  for (;;) pause();
}

/// One call, and its answer; or `at_once` of them, then all answers.
long call(caf::scoped_actor& self, const caf::actor& to, int at_once) {
  using Pending = decltype(self->request(to, caf::infinite, std::int32_t{}));
  std::vector<Pending> pending;
  pending.reserve(static_cast<std::size_t>(at_once));
  for (std::int32_t i = 0; i < at_once; ++i) pending.push_back(self->request(to, caf::infinite, i));
  long answered = 0;
  for (auto& one : pending)
    one.receive([&](std::int32_t) { ++answered; },
                [&](const caf::error& error) {
                  std::fprintf(stderr, "caf_calls: %s\n", caf::to_string(error).c_str());
                  std::_Exit(1);
                });
  return answered;
}

double rate(caf::scoped_actor& self, const caf::actor& to, int at_once, double seconds) {
  using Clock = std::chrono::steady_clock;
  for (int i = 0; i < 20; ++i) call(self, to, at_once);
  const auto begin = Clock::now();
  double passed = 0;
  long done = 0;
  while (passed < seconds) {
    done += call(self, to, at_once);
    passed = std::chrono::duration<double>(Clock::now() - begin).count();
  }
  return static_cast<double>(done) / passed;
}

int measure(double seconds, std::uint16_t port, int count, char** names) {
  caf::actor_system_config config;
  config.load<caf::io::middleman>();
  caf::actor_system system(config);
  const auto remote = system.middleman().remote_actor("127.0.0.1", port);
  if (!remote) return 1;
  caf::scoped_actor self(system);
  for (int i = 0; i < count; ++i) {
    const std::string name = names[i];
    const int at_once = name == "1_1_actor_calls_sync" ? 1 : name == "1_1_actor_calls_async" ? 1000 : 0;
    if (at_once == 0) continue;
    std::printf("{\"name\": \"%s\", \"per_second\": %.3f}\n", names[i], rate(self, *remote, at_once, seconds));
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  int ends[2];
  if (pipe(ends) != 0) return 1;
  const pid_t child = fork();  // Before either has a thread.
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    serve(ends[1]);
  }
  std::uint16_t port = 0;
  if (read(ends[0], &port, sizeof port) != sizeof port || port == 0) return 1;
  const int status = measure(std::atof(argv[1]), port, argc - 2, argv + 2);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  return status;
}
