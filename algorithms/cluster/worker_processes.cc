#include "algorithms/cluster/worker_processes.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "actors/process_client.h"
#include "actors/process_ids.h"
#include "runtime/base/readable.h"
#include "runtime/process/log_tail.h"
#include "runtime/process/supervise.h"
#include "runtime/store/memory_room.h"

namespace paceline::cluster {
namespace {

constexpr std::size_t kLogLines = 5;
constexpr int kLogTries = 100;

char state_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string stat;
  std::getline(file, stat);
  const auto end = stat.rfind(')');
  return end == std::string::npos || end + 2 >= stat.size() ? '\0' : stat[end + 2];
}

/// Whether workers of both can be forked from one process.
bool same_server(const actors::Executable& a, const actors::Executable& b) {
  return a.path == b.path && a.build == b.build && a.args == b.args && a.env == b.env && a.directory == b.directory;
}

bool is_actor(const actors::ActorRouter::Fork& fork) {
  return !fork.type.empty() || (!fork.name.empty() && fork.name != "tasks");
}

/// A file name from what the user called an actor. Nobody without a name is called as a job's ranks are.
std::string log_name(const actors::ActorRouter::Fork& fork) {
  const std::string number = std::to_string(actors::number_on_node(fork.worker));
  if (!is_actor(fork)) return "tasks-" + number;
  if (fork.name.empty()) return "actor-" + number;
  std::string name = fork.name.substr(0, 100);
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '_') c = '_';
  return name;
}

/// "Counter counter" of an actor, "tasks, worker 3" of who runs tasks.
std::string shown_name(const actors::ActorRouter::Fork& fork) {
  constexpr std::size_t kNameMax = 100;
  if (!is_actor(fork)) return "tasks, worker " + std::to_string(actors::number_on_node(fork.worker));
  std::string name = fork.type;
  const std::string_view unnamed = "(anonymous namespace)::";
  for (std::size_t at = name.find(unnamed); at != std::string::npos; at = name.find(unnamed))
    name.erase(at, unnamed.size());
  name = first_of(name, kNameMax);
  if (!fork.name.empty()) name += (name.empty() ? "" : " ") + std::string(first_of(fork.name, kNameMax));
  std::replace(name.begin(), name.end(), '\n', ' ');
  return readable(name);
}

}  // namespace

WorkerProcesses::WorkerProcesses(Options options, EventLoop& loop, observe::Log& log, Listener listener)
    : options_(std::move(options)), loop_(loop), log_(log), listener_(std::move(listener)) {}

WorkerProcesses::~WorkerProcesses() {
  servers_.clear();  // Kills and reaps the workers.
  while (!workers_.empty()) forget(workers_.begin()->first);
}

void WorkerProcesses::fork(const actors::ActorRouter::Fork& fork) {
  auto server = server_for(fork.executable);
  if (!server) return never_started(fork.worker, server.error().text);
  Worker worker;
  worker.server = *server;
  worker.log = log_for(fork);
  if (!fork.executable.driver.empty())
    worker.output = {fork.worker,
                     shown_name(fork),
                     worker.log.path,
                     worker.log.begin,
                     {fork.executable.driver, fork.executable.driver_node}};
  process::ForkRequest request;
  request.worker = fork.worker;
  request.log_path = worker.log.path;
  request.env = {{actors::kAgentEnv, options_.agent_address}};
  workers_[fork.worker] = std::move(worker);
  if (auto forked = servers_.at(*server).process.fork(request); !forked)
    never_started(fork.worker, forked.error().text);
}

/// NAME.log, NAME-2.log ...: the first that no living worker writes to.
WorkerProcesses::Log WorkerProcesses::log_for(const actors::ActorRouter::Fork& fork) {
  const std::string folder = fork.executable.logs.empty() ? options_.directory : fork.executable.logs;
  const std::string base = folder + "/" + log_name(fork);
  const bool if_printed = !fork.executable.logs.empty() && fork.executable.logs_if_printed;
  int tries = kLogTries;  // Who removes an empty log, or its folder, may be another node's agent.
  for (int number = 1;;) {
    if (if_printed) make_folder(folder);
    Log log{base + (number == 1 ? "" : "-" + std::to_string(number)) + ".log", if_printed};
    log.lock.reset(::open(log.path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    if (!log.lock) {
      if (errno == ENOENT && if_printed && --tries > 0) continue;
      return log;  // Its fork says why.
    }
    if (::flock(log.lock.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      ++number;
      continue;
    }
    struct stat status {};
    if (::fstat(log.lock.get(), &status) == 0 && status.st_nlink == 0 && --tries > 0) continue;
    log.begin = std::max<off_t>(0, ::lseek(log.lock.get(), 0, SEEK_END));
    return log;
  }
}

/// What goes wrong says the fork of who is to log there.
void WorkerProcesses::make_folder(const std::string& logs) {
  const auto runs = std::filesystem::path(logs).parent_path().parent_path();
  std::error_code failed;
  if (std::filesystem::create_directory(runs, failed)) made_.insert(runs.string());
  std::filesystem::create_directories(logs, failed);
}

/// Its worker has ended.
void WorkerProcesses::leave(const Log& log) {
  struct stat status {};
  if (!log.if_printed || !log.lock || ::fstat(log.lock.get(), &status) != 0 || status.st_size > 0) return;
  (void)::unlink(log.path.c_str());
  const std::filesystem::path folder = std::filesystem::path(log.path).parent_path();
  const auto run = folder.parent_path();
  if (::rmdir(folder.c_str()) != 0 || ::rmdir(run.c_str()) != 0) return;  // There is something else.
  if (made_.contains(run.parent_path().string()) && ::rmdir(run.parent_path().c_str()) == 0)
    made_.erase(run.parent_path().string());
}

Result<std::uint32_t> WorkerProcesses::server_for(const actors::Executable& executable) {
  for (const auto& [id, server] : servers_)
    if (!server.over && same_server(server.executable, executable)) return id;
  end_idle_servers();
  process::ForkServer::Options options;
  options.executable = executable.path;
  options.args = executable.args;
  options.env = executable.env;
  options.directory = executable.directory;
  const bool has_folder = !executable.logs.empty() && !executable.logs_if_printed;
  options.log_path =
      (has_folder ? executable.logs : options_.directory) + "/fork-server-" + to_string(options_.node) + ".log";
  auto started = process::ForkServer::start(std::move(options));
  if (!started) return tl::unexpected(started.error());
  const int descriptor = started->descriptor();
  const auto id = next_server_++;
  servers_.emplace(id, Server{executable, std::move(*started)});
  PACELINE_TRY(loop_.watch(descriptor, [this, id] { on_server_events(id); }));
  log_.info("fork server of " + executable.path + " started");
  return id;
}

/// Nobody waits for the end of a server: it goes when its events say that nothing is left of it.
void WorkerProcesses::end_idle_servers() {
  std::set<std::uint32_t> used;
  for (const auto& [id, worker] : workers_) used.insert(worker.server);
  const auto is_idle = [&](const auto& entry) { return !entry.second.over && !used.contains(entry.first); };
  auto idle = static_cast<std::size_t>(std::count_if(servers_.begin(), servers_.end(), is_idle));
  for (auto& entry : servers_) {
    if (idle < kIdleServersMax) return;
    if (!is_idle(entry)) continue;
    entry.second.over = true;
    entry.second.process.retire();
    --idle;
  }
}

void WorkerProcesses::on_server_events(std::uint32_t id) {
  for (auto& event : servers_.at(id).process.events()) {
    switch (event.kind) {
      case process::ForkServer::Event::Kind::forked: on_forked(id, std::move(event)); break;
      case process::ForkServer::Event::Kind::exited: on_ended(event.worker, event.exit); break;
      case process::ForkServer::Event::Kind::fork_refused: never_started(event.worker, event.text); break;
      case process::ForkServer::Event::Kind::server_restarted:
        log_.warning("a fork server died and was started again; its workers go on");
        break;
      case process::ForkServer::Event::Kind::server_failed: on_server_failed(id, event.text); break;
    }
  }
  const auto server = servers_.find(id);
  if (!server->second.process.is_empty()) return;
  loop_.forget(server->second.process.descriptor());
  servers_.erase(server);
}

void WorkerProcesses::on_forked(std::uint32_t server, process::ForkServer::Event event) {
  auto& worker = workers_[event.worker];
  worker.server = server;
  worker.pid = event.pid;
  worker.born_with = store::private_bytes(event.pid);
  worker.pidfd = std::move(event.pidfd);
  worker.socket = std::move(event.socket);
  (void)loop_.watch(worker.socket.get(), [this, forked = event.worker] { on_socket(forked); });
  const int flags = ::fcntl(worker.socket.get(), F_GETFL);
  (void)::fcntl(worker.socket.get(), F_SETFL, flags | O_NONBLOCK);  // Of our end only.
  tell_output(worker, worker.pid);
  send_unsent(event.worker, worker);
  if (worker.kill_when_forked) end(event.worker, std::string(worker.ended_because));
}

std::vector<WorkerProcesses::MemorySource> WorkerProcesses::memory_sources() const {
  std::vector<MemorySource> sources;
  for (const auto& [id, worker] : workers_)
    if (worker.pid > 0) sources.push_back({id, worker.pid, worker.born_with});
  return sources;
}

void WorkerProcesses::on_connected(WorkerId worker, pid_t pid) {
  if (const auto it = workers_.find(worker); it != workers_.end()) tell_output(it->second, pid);
}

void WorkerProcesses::tell_output(Worker& worker, pid_t pid) {
  auto output = std::exchange(worker.output, {});
  if (!output || !listener_.prints) return;
  output->who += " pid=" + std::to_string(pid);
  if (output->reader.node != options_.node) output->who += " node " + to_string(options_.node);
  listener_.prints(*std::move(output));
}

/// Who runs goes on; who waits to be forked hears why that will not be.
void WorkerProcesses::on_server_failed(std::uint32_t id, const std::string& why) {
  log_.error(why);
  servers_.at(id).over = true;
  std::vector<WorkerId> waiting;
  for (const auto& [waits, worker] : workers_)
    if (worker.server == id && worker.pid < 0) waiting.push_back(waits);
  for (const WorkerId waits : waiting) never_started(waits, why);
}

void WorkerProcesses::never_started(WorkerId worker, const std::string& why) {
  if (const auto it = workers_.find(worker); it != workers_.end()) leave(it->second.log);
  workers_.erase(worker);
  listener_.ended(worker, {why});
}

void WorkerProcesses::on_ended(WorkerId worker, const process::Exit& exit) {
  const auto it = workers_.find(worker);
  if (it == workers_.end()) return;
  std::string how = it->second.ended_because.empty() ? process::to_string(exit) : it->second.ended_because;
  const bool by_us = !it->second.ended_because.empty() || it->second.kill_when_forked;
  const auto tail = process::log_tail(it->second.log.path, it->second.log.begin, kLogLines);
  if (!by_us && !tail.empty()) how += "; its log " + it->second.log.path + " ends with: " + tail;
  // An end from outside (kill, the kernel's out-of-memory killer) is an absence; an end of its own making is the user's
  // program failing.
  const bool outside = exit.signalled && (exit.code == SIGKILL || exit.code == SIGTERM || exit.code == SIGINT);
  const Listener::End end{how, tail.empty() ? "" : it->second.log.path,
                          !outside && !by_us && (exit.signalled || exit.code != 0)};
  if (listener_.printed) listener_.printed(worker);
  forget(worker);
  listener_.ended(worker, end);
}

void WorkerProcesses::forget(WorkerId worker) {
  const auto it = workers_.find(worker);
  if (it == workers_.end()) return;
  if (it->second.socket) loop_.forget(it->second.socket.get());
  leave(it->second.log);
  workers_.erase(it);
}

void WorkerProcesses::end(WorkerId worker, const std::string& reason) {
  const auto it = workers_.find(worker);
  if (it == workers_.end()) return;
  it->second.kill_when_forked = true;
  if (it->second.ended_because.empty()) it->second.ended_because = reason;
  if (!it->second.pidfd) return;
  if (auto killed = process::kill_worker(it->second.pidfd, SIGKILL); !killed)
    log_.debug("worker " + to_string(worker) + ": " + killed.error().text);
}

void WorkerProcesses::answer(WorkerId worker, std::uint64_t request, const Result<std::string>& body,
                             const std::vector<process::BorrowedFd>& fds) {
  using Kind = process::DescriptorMessage::Kind;
  const auto it = workers_.find(worker);
  if (it == workers_.end()) return;
  Worker& to = it->second;
  if (to.unsent.size() >= kUnsentMax) {
    const Error error{ErrorKind::overloaded,
                      "it has not read the last " + std::to_string(kUnsentMax) + " packets that were sent to it"};
    return end(worker, error.text);
  }
  process::Packet packet;
  for (const process::BorrowedFd fd : fds) packet.fds.push_back(fd.duplicate());
  if (!std::all_of(packet.fds.begin(), packet.fds.end(), [](const process::Fd& fd) { return static_cast<bool>(fd); }))
    return refuse_for_want_of_descriptors(worker, request);
  packet.bytes = body ? process::encode(Kind::answer, request, *body, fds.size())
                      : process::encode(Kind::failure, request, body.error().text, 0);
  to.unsent.push_back(std::move(packet));
  send_unsent(worker, to);
}

void WorkerProcesses::refuse_for_want_of_descriptors(WorkerId worker, std::uint64_t request) {
  const Error error{ErrorKind::overloaded, "its agent has no descriptors left (ulimit -n)"};
  log_.error("worker " + to_string(worker) + ": " + error.text);
  if (request != 0) answer(worker, request, tl::unexpected(error), {});
}

void WorkerProcesses::send_unsent(WorkerId id, Worker& worker) {
  if (!worker.socket) return;
  for (; !worker.unsent.empty(); worker.unsent.pop_front()) {
    const auto& packet = worker.unsent.front();
    const auto sent = process::send_with_fds(worker.socket, packet.bytes, {packet.fds.begin(), packet.fds.end()});
    if (sent) continue;
    if (sent.error().kind == ErrorKind::overloaded) break;
    log_.warning("worker " + to_string(id) + ": " + sent.error().text);
  }
  loop_.watch_room(worker.socket.get(), !worker.unsent.empty());
}

char WorkerProcesses::state(WorkerId worker) const {
  const auto it = workers_.find(worker);
  return it == workers_.end() ? '\0' : state_of(it->second.pid);
}

pid_t WorkerProcesses::pid(WorkerId worker) const {
  const auto it = workers_.find(worker);
  return it == workers_.end() ? -1 : it->second.pid;
}

std::string WorkerProcesses::log(WorkerId worker) const {
  const auto it = workers_.find(worker);
  return it == workers_.end() ? std::string() : it->second.log.path;
}

void WorkerProcesses::on_socket(WorkerId worker) {
  const auto it = workers_.find(worker);
  if (it == workers_.end()) return;
  send_unsent(worker, it->second);
  auto packet = process::receive_perhaps_without_fds(it->second.socket, 0);
  if (!packet && packet.error().kind == ErrorKind::timed_out) return;
  if (!packet && packet.error().kind != ErrorKind::invalid)
    return loop_.forget(it->second.socket.get());  // Hung up: its exit is reported.
  auto message = std::move(packet).and_then(process::decode_descriptor_message);
  if (message && message->fds_lost) return refuse_for_want_of_descriptors(worker, message->request);
  if (message) return listener_.said(worker, *std::move(message));
  log_.warning("worker " + to_string(worker) + ": " + message.error().text);
  end(worker, message.error().text);
}

}  // namespace paceline::cluster
