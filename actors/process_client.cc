#include "actors/process_client.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <optional>
#include <random>
#include <utility>

#include "actors/arguments.h"
#include "actors/continuations.h"
#include "actors/driver_output.h"
#include "actors/embedded_cluster.h"
#include "actors/process_ids.h"
#include "actors/task_error.h"
#include "runtime/base/check.h"
#include "runtime/base/read_number.h"
#include "runtime/transport/zmq/address.h"

namespace paceline::actors {
namespace {

/// The one thing that a process has once: users' functions reach it without being handed it. Never destroyed, since
/// handles in static variables may outlive main.
struct Process {
  std::mutex mutex;
  std::optional<EmbeddedCluster> own;  // Outlives the client.
  std::string directory;               // The cluster's.
  std::unique_ptr<Client> client;
  std::vector<std::unique_ptr<Client>> before;  // To other agents.
  std::optional<DriverOutput> output;
  bool closed = false;
  std::vector<std::string> arguments;
};

constexpr Duration kOtherAgentPatience = std::chrono::seconds(1);

Process& process() {
  static auto* instance = new Process;
  return *instance;
}

/// All but what is set anew for every run or by the shell for every command: with those, two runs would not find the
/// same fork server.
std::vector<std::string> environment_of_workers() {
  constexpr std::array<std::string_view, 6> kLeftOut{"PACELINE_RUN", kNodeEnv, kAgentEnv, "_", "OLDPWD", "SHLVL"};
  std::vector<std::string> variables;
  for (char** entry = environ; *entry; ++entry) {
    const std::string_view variable = *entry;
    const auto name = variable.substr(0, variable.find('='));
    if (std::find(kLeftOut.begin(), kLeftOut.end(), name) == kLeftOut.end()) variables.emplace_back(variable);
  }
  std::sort(variables.begin(), variables.end());
  return variables;
}

std::string agent_socket(const std::string& runtime_directory, NodeId node) {
  return runtime_directory + "/agent-" + to_string(node) + ".sock";
}

bool has_agent(const std::string& runtime_directory, NodeId node) {
  return access(agent_socket(runtime_directory, node).c_str(), F_OK) == 0;
}

/// Those that were killed leave their sockets behind.
std::vector<NodeId> agents_of(const std::string& runtime_directory) {
  std::vector<NodeId> nodes;
  for (NodeId node{0}; node.value < kNodesMax; ++node.value)
    if (has_agent(runtime_directory, node) &&
        transport::has_listener(agent_address(runtime_directory, node)).value_or(false))
      nodes.push_back(node);
  return nodes;
}

/// The driver's: the first, or the one that is asked for.
Result<NodeId> node_of_driver(const std::string& runtime_directory) {
  const auto asked = environment(kNodeEnv, "0");
  const NodeId node{read_number<std::int32_t>(asked).value_or(-1)};
  if (node == NodeId{0} || (node.value > 0 && has_agent(runtime_directory, node))) return node;
  return fail(ErrorKind::invalid,
              std::string(kNodeEnv) + "=" + asked + ": the cluster has no such node; `paceline status` lists them");
}

std::string driver_name() {
  std::random_device device;
  return "driver/" + std::to_string(getpid()) + "-" + std::to_string(device());
}

Client::Options driver_options(const std::string& runtime_directory, NodeId node, std::string name,
                               Executable executable) {
  Client::Options options;
  options.role = "driver";
  options.name = std::move(name);
  options.agent_address = agent_address(runtime_directory, node);
  options.executable = std::move(executable);
  return options;
}

}  // namespace

std::string environment(const char* name, std::string otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != 0 ? value : otherwise;
}

std::string agent_address(const std::string& runtime_directory, NodeId node) {
  return "ipc://" + agent_socket(runtime_directory, node);
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
  executable.env = environment_of_workers();
  std::error_code gone;  // The working directory may have been removed: then the agent's.
  executable.directory = std::filesystem::current_path(gone).string();
  return executable;
}

Client& process_client() {
  refuse_in_copy();
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
  } else if (!has_agent(directory, NodeId{0})) {
    throw TaskError({ErrorKind::not_found, std::string(kClusterEnv) + "=" + directory +
                                               ": no cluster runs there; unset it, or start one with `paceline up`"});
  }
  const auto node = node_of_driver(directory);
  if (!node) throw TaskError(node.error());
  auto options = driver_options(directory, *node, driver_name(), *std::move(executable));
  set_logs(options.executable);
  if (shows_output()) options.executable.driver = options.name;
  auto client = Client::connect(std::move(options), process_transport());
  if (!client) throw TaskError(client.error());
  here.client = *std::move(client);
  here.directory = directory;
  set_result_looker(here.client.get());
  here.output.emplace(*here.client);
  return *here.client;
}

Result<Client*> change_agent() {
  auto& here = process();
  std::lock_guard lock(here.mutex);
  PACELINE_CHECK(here.client && here.output, "a driver that is connected has another agent to look for");
  const NodeId before = here.client->node();
  auto nodes = agents_of(here.directory);
  const auto own = std::stable_partition(nodes.begin(), nodes.end(), [before](NodeId node) { return node != before; });
  if (!here.client->ended()) nodes.erase(own, nodes.end());
  Error why{ErrorKind::not_found, "the cluster in " + here.directory + " has no other node"};
  for (const NodeId node : nodes) {
    auto options = driver_options(here.directory, node, here.client->name(), here.client->executable());
    options.welcome_patience = kOtherAgentPatience;
    auto client = Client::connect(std::move(options), process_transport());
    if (!client) {
      why = std::move(client).error();
      continue;
    }
    here.before.push_back(std::exchange(here.client, *std::move(client)));
    set_result_looker(here.client.get());
    here.output->change(*here.client);
    return here.client.get();
  }
  return tl::unexpected(std::move(why));
}

void set_process_client(std::unique_ptr<Client> client) {
  std::lock_guard lock(process().mutex);
  PACELINE_CHECK(!process().client, "a process has one client");
  process().client = std::move(client);
  set_result_looker(process().client.get());
}

DriverOutput& process_output() {
  std::lock_guard lock(process().mutex);
  PACELINE_CHECK(process().output, "a driver that is connected has its output");
  return *process().output;
}

void close_process_client() {
  if (is_copy()) return;  // It has none of its threads.
  Client* client = nullptr;
  {
    std::lock_guard lock(process().mutex);
    process().closed = true;
    client = process().client.get();
  }
  if (process().output) process().output->finish();
  if (client != nullptr) client->close();
  for (const auto& before : process().before) before->close();
  continuations().close();
  process().own.reset();
}

}  // namespace paceline::actors

namespace paceline {

std::vector<std::string> arguments() {
  auto& here = actors::process();
  std::lock_guard lock(here.mutex);
  return here.arguments;
}

}  // namespace paceline
