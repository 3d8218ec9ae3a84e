#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <utility>

#include "actors/process_client.h"
#include "actors/worker/worker_main.h"
#include "runtime/process/fork_server.h"

// The linker's --wrap=main puts __wrap_main in front of the user's main, which is then called __real_main.
extern "C" int __real_main(int argc, char** argv);  // NOLINT(bugprone-reserved-identifier)

namespace {

[[noreturn]] void serve(const std::string& socket) {
  char* end = nullptr;
  const long descriptor = std::strtol(socket.c_str(), &end, 10);
  if (*end != 0 || descriptor < 0 || descriptor > 1 << 20) {
    std::fprintf(stderr, "paceline: %s=%s is no descriptor: only agents set it\n", paceline::process::kForkServerEnv,
                 socket.c_str());
    std::_Exit(2);
  }
  // Nothing is warmed up: a step of libtorch before the fork made the first step of a job no sooner.
  auto child = paceline::process::run_fork_server(paceline::process::Fd(static_cast<int>(descriptor)), {});
  unsetenv(paceline::process::kForkServerEnv);  // What the worker starts itself is no fork server.
  paceline::worker::worker_main(child.worker, std::move(child.agent_socket), paceline::actors::process_transport());
}

}  // namespace

extern "C" int __wrap_main(int argc, char** argv) {  // NOLINT(bugprone-reserved-identifier)
  paceline::actors::set_arguments(argc, argv);
  const auto socket = paceline::actors::environment(paceline::process::kForkServerEnv);
  if (!socket.empty()) serve(socket);
  int status = 1;
  try {
    status = __real_main(argc, argv);
  } catch (const std::exception& error) {
    std::fflush(stdout);
    std::fprintf(stderr, "%s: %s\n", argc > 0 ? argv[0] : "paceline", error.what());
  } catch (...) {
    std::fflush(stdout);
    std::fprintf(stderr, "%s: main threw something that is no std::exception\n", argc > 0 ? argv[0] : "paceline");
  }
  paceline::actors::close_process_client();
  return status;
}
