#pragma once

#include <sys/types.h>

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "algorithms/cluster/workers.h"
#include "runtime/base/event_loop.h"
#include "runtime/observe/log.h"
#include "runtime/process/fd.h"
#include "runtime/process/fork_server.h"

namespace paceline::cluster {

/// The worker processes of one node: a fork server for each program with its arguments, environment and directory (they
/// are kept: the next run of the same finds its libraries loaded), its workers' logs, ends and Unix sockets. Owned by
/// the agent's control loop; whoever destroys it ends them all.
class WorkerProcesses final : public Workers {
 public:
  struct Options {
    NodeId node;
    std::string directory;      ///< For logs of programs that name no other.
    std::string agent_address;  ///< Workers connect to it.
  };
  WorkerProcesses(Options options, EventLoop& loop, observe::Log& log, Listener listener);
  WorkerProcesses(const WorkerProcesses&) = delete;
  WorkerProcesses& operator=(const WorkerProcesses&) = delete;
  ~WorkerProcesses() override;

  /// Starts the executable's fork server, if there is none.
  void fork(const actors::ActorRouter::Fork& fork) override;
  void on_connected(WorkerId worker, pid_t pid) override;
  void end(WorkerId worker, const std::string& reason) override;
  /// What it has no room for is kept, as is what a worker asks for before its fork was told of here (it connects by
  /// itself). One that lets kUnsentMax packets lie is ended.
  void answer(WorkerId worker, std::uint64_t request, const Result<std::string>& body,
              const std::vector<process::BorrowedFd>& fds) override;
  char state(WorkerId worker) const override;
  pid_t pid(WorkerId worker) const override;
  std::string log(WorkerId worker) const override;
  std::size_t size() const override { return workers_.size(); }
  std::vector<MemorySource> memory_sources() const override;
  /// Those that have ended, but whose workers go on, too.
  std::size_t servers() const { return servers_.size(); }
  /// Fork servers that are kept although they have no workers; then the oldest go.
  static constexpr std::size_t kIdleServersMax = 4;
  static constexpr std::size_t kUnsentMax = 1024;

 private:
  /// A worker's own while it lives: the lock keeps other workers, also of other agents, from the same file.
  struct Log {
    std::string path;
    bool if_printed = false;  ///< It goes with the worker if nothing stands in it.
    std::int64_t begin = 0;   ///< Where its lines begin: before stand those of an earlier one.
    process::Fd lock{};
  };
  struct Worker {
    std::uint32_t server = 0;
    Log log;
    pid_t pid = -1;
    std::uint64_t born_with = 0;  ///< Bytes.
    process::Fd pidfd, socket;
    std::string ended_because;  ///< Set when its end is our doing.
    bool kill_when_forked = false;
    std::deque<process::Packet> unsent{};          ///< While it has no socket, or its socket no room.
    std::optional<WorkerOutput::Source> output{};  ///< Until it is forked.
  };

  /// One that is over forks no more; it is kept until its last worker has ended, of which it is to tell.
  struct Server {
    actors::Executable executable;
    process::ForkServer process;
    bool over = false;
  };

  Log log_for(const actors::ActorRouter::Fork& fork);
  void make_folder(const std::string& logs);
  Result<std::uint32_t> server_for(const actors::Executable& executable);
  void end_idle_servers();
  void on_server_events(std::uint32_t server);
  void on_forked(std::uint32_t server, process::ForkServer::Event event);
  void on_server_failed(std::uint32_t server, const std::string& why);
  void on_ended(WorkerId worker, const process::Exit& exit);
  void on_socket(WorkerId worker);
  void refuse_for_want_of_descriptors(WorkerId worker, std::uint64_t request);
  void send_unsent(WorkerId id, Worker& worker);
  void forget(WorkerId worker);
  void never_started(WorkerId worker, const std::string& why);
  void tell_output(Worker& worker, pid_t pid);
  void leave(const Log& log);

  Options options_;
  EventLoop& loop_;
  observe::Log& log_;
  Listener listener_;
  std::map<std::uint32_t, Server> servers_;  // In the order of their start.
  std::uint32_t next_server_ = 0;
  std::map<WorkerId, Worker> workers_;
  std::set<std::string> made_;  // Folders of runs that were not there, and go when nothing is in them.
};

}  // namespace paceline::cluster
