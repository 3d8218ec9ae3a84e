#include "actors/process_client.h"

#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <random>
#include <utility>

#include "actors/embedded_cluster.h"
#include "actors/task_error.h"
#include "runtime/base/check.h"

namespace paceline::actors {
namespace {

/// The one thing that a process has once: users' functions reach it without being handed it. Never destroyed, since
/// handles in static variables may outlive main.
struct Process {
  std::mutex mutex;
  std::optional<EmbeddedCluster> own;  // Outlives the client.
  std::unique_ptr<Client> client;
  bool closed = false;
  std::vector<std::string> arguments;
};

Process& process() {
  static auto* instance = new Process;
  return *instance;
}

std::string driver_name() {
  std::random_device device;
  return "driver/" + std::to_string(getpid()) + "-" + std::to_string(device());
}

}  // namespace

std::string environment(const char* name, std::string otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != 0 ? value : otherwise;
}

std::string agent_address(const std::string& runtime_directory) {
  return "ipc://" + runtime_directory + "/agent-0.sock";
}

void set_arguments(int argc, char** argv) {
  std::lock_guard lock(process().mutex);
  process().arguments.assign(argv + (argc > 0 ? 1 : 0), argv + argc);
}

Result<Executable> this_executable() {
  Executable executable;
  char path[PATH_MAX];
  const auto size = readlink("/proc/self/exe", path, sizeof path);
  if (size < 0) return fail_errno("read the link /proc/self/exe");
  executable.path.assign(path, static_cast<std::size_t>(size));
  auto build = executable_build();
  if (!build) return tl::unexpected(std::move(build).error());
  executable.build = *std::move(build);
  executable.args = process().arguments;
  executable.logs = environment(kLogsEnv);
  if (auto libraries = environment("LD_LIBRARY_PATH"); !libraries.empty())
    executable.env.push_back("LD_LIBRARY_PATH=" + libraries);
  return executable;
}

Client& process_client() {
  auto& here = process();
  std::lock_guard lock(here.mutex);
  if (here.client) return *here.client;
  if (here.closed) throw TaskError({ErrorKind::cancelled, "this process has left the cluster: main has ended"});
  auto executable = this_executable();
  if (!executable) throw TaskError(executable.error());
  auto directory = environment(kClusterEnv);
  if (directory.find('/') == std::string::npos) {  // None, or one that is named.
    auto own = EmbeddedCluster::start(executable->path);
    if (!own) throw TaskError(own.error());
    directory = own->directory();
    here.own.emplace(*std::move(own));
  } else if (access((directory + "/agent-0.sock").c_str(), F_OK) != 0) {
    throw TaskError({ErrorKind::not_found, std::string(kClusterEnv) + "=" + directory +
                                               ": no cluster runs there; unset it, or start one with `paceline up`"});
  }
  Client::Options options;
  options.role = "driver";
  options.name = driver_name();
  options.agent_address = agent_address(directory);
  options.executable = *std::move(executable);
  auto client = Client::connect(std::move(options), process_transport());
  if (!client) throw TaskError(client.error());
  here.client = *std::move(client);
  return *here.client;
}

void set_process_client(std::unique_ptr<Client> client) {
  std::lock_guard lock(process().mutex);
  PACELINE_CHECK(!process().client, "a process has one client");
  process().client = std::move(client);
}

void close_process_client() {
  Client* client = nullptr;
  {
    std::lock_guard lock(process().mutex);
    process().closed = true;
    client = process().client.get();
  }
  if (client != nullptr) client->close();
  process().own.reset();
}

}  // namespace paceline::actors
