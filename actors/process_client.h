#pragma once

#include "actors/client.h"

namespace paceline::actors {

class DriverOutput;

/// The connection that the public functions (async, create, get) of this process use. In a driver it is made at the
/// first use, to the cluster that PACELINE_CLUSTER names, or one that is up, or one that is started for this driver; in
/// a worker by worker_main. Throws paceline::TaskError where there is no cluster and none can be started.
Client& process_client();
/// A client made by somebody else (worker_main) becomes the process's. Once.
void set_process_client(std::unique_ptr<Client> client);
/// A driver's, to another agent of its cluster, under the same name, or to the one that was started in place of the one
/// that has ended. The connection before is kept until the process leaves.
/// What a driver had at an agent that is gone is lost, but for what works for a job (Client::take_calls_of).
Result<Client*> change_agent();
/// What shows the output of this driver's workers. There is one once process_client() has returned.
DriverOutput& process_output();
/// Ends the connection, if there is one, after sending what is queued, and showing what workers have printed: the
/// driver's actors end. Handles and futures that are left may still be destroyed afterwards.
void close_process_client();

/// What this process is now, for the agents that are to start workers like it: its program and arguments, its
/// environment and its working directory.
Result<Executable> this_executable();
/// The arguments that main got, or would have got.
void set_arguments(int argc, char** argv);

/// `name` in the environment, or the default. Empty counts as unset.
std::string environment(const char* name, std::string otherwise = {});
inline constexpr const char* kClusterEnv = "PACELINE_CLUSTER";  ///< The runtime directory of a cluster.
inline constexpr const char* kNodeEnv = "PACELINE_NODE";        ///< Of the cluster: whose agent a driver speaks with.
inline constexpr const char* kAgentEnv = "PACELINE_AGENT";      ///< The agent's address, for workers.

/// The address of the agent of `node` of the cluster in `runtime_directory`.
std::string agent_address(const std::string& runtime_directory, NodeId node = NodeId{0});
/// The transport of real processes (ZeroMQ).
Client::TransportFactory process_transport();

}  // namespace paceline::actors
