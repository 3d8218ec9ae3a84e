#include "runtime/process/fork_server.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <deque>
#include <map>
#include <optional>

#include "runtime/base/steady_now.h"
#include "runtime/process/fd.h"
#include "runtime/process/fork_protocol.h"
#include "runtime/process/log_tail.h"
#include "runtime/process/spawn.h"
#include "runtime/process/supervise.h"

namespace paceline::process {
namespace {

constexpr int kFailuresMax = 3;
constexpr Duration kShortLife = std::chrono::seconds(1);
constexpr Duration kHangUpPatience = std::chrono::seconds(3);  // For a server that is to end by itself.
// Requests at the server at once; bounds the descriptors in flight on its socket.
constexpr std::size_t kSentMax = 64;
constexpr std::size_t kLogLines = 5;

Exit exit_of(const siginfo_t& info) { return {.signalled = info.si_code != CLD_EXITED, .code = info.si_status}; }

/// How the process ended, without waiting; nullopt while it runs. One that somebody else reaped counts as killed.
std::optional<Exit> try_reap(int pidfd, int flags = 0) {
  siginfo_t info{};
  if (::waitid(static_cast<idtype_t>(P_PIDFD), static_cast<id_t>(pidfd), &info, WEXITED | WNOHANG | flags) < 0)
    return errno == ECHILD ? std::optional(Exit{.signalled = true, .code = SIGKILL}) : std::nullopt;
  if (info.si_pid == 0) return std::nullopt;
  return exit_of(info);
}

/// Waits until `deadline` for the process to end.
void wait_ended(int pidfd, Instant deadline) {
  pollfd waiting{pidfd, POLLIN, 0};
  for (Instant now = steady_now(); now < deadline; now = steady_now())
    if (::poll(&waiting, 1, static_cast<int>((deadline - now) / std::chrono::milliseconds(1)) + 1) >= 0 ||
        errno != EINTR)
      return;
}

}  // namespace

struct ForkServer::State {
  enum class Phase { starting, serving, over };
  struct Worker {
    pid_t pid;
    Fd pidfd;
    bool adopted = false;  ///< Its server died: it is our child.
  };
  struct Pending {
    WorkerId worker;
    std::string bytes;
    bool sent = false;
  };

  explicit State(Options given) : options(std::move(given)) {}
  ~State();

  Result<void> launch();
  void add(int fd) {
    epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
    (void)::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, fd, &event);
  }
  void drop(int fd) { (void)::epoll_ctl(epoll.get(), EPOLL_CTL_DEL, fd, nullptr); }
  void set_timer(Duration after);
  bool timer_fired();

  void receive();
  void on_message(const ForkMessage& message, std::vector<Fd> fds);
  void on_ready();
  void on_forked(const ForkMessage& message, std::vector<Fd> fds);
  void on_exited(const ForkMessage& message);
  void send_requests();
  void on_server_ended(const Exit& exit);
  void relaunch(std::string why);
  void fail_for_good(std::string why);
  void end_server(std::string why);
  void hang_up();
  void reap_adopted();
  bool answer(WorkerId worker);
  std::string with_log(std::string text) const;

  Options options;
  Phase phase = Phase::starting;
  Fd epoll, timer, socket, server;  ///< server: its pidfd.
  pid_t server_pid = -1;
  bool ever_ready = false, forked_in_life = false, wants_out = false;
  Instant ready_at{};
  int failures = 0;
  std::string why_over;
  off_t log_start = 0;
  std::deque<Pending> pending;
  std::map<WorkerId, Worker> workers;
  std::vector<Fd>
      unconfirmed;  ///< Reported as exited, perhaps not reaped yet; the server's next message says that they are.
  std::vector<Event> events;
};

Result<void> ForkServer::State::launch() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
    return fail_errno("socketpair for the fork server");
  Fd ours(ends[0]), theirs(ends[1]);
  ::fcntl(ours.get(), F_SETFL, O_NONBLOCK);
  if (theirs.get() <= STDERR_FILENO) theirs.reset(::fcntl(theirs.get(), F_DUPFD_CLOEXEC, kInheritedFd));

  std::vector<std::string> inherited = options.env;
  if (inherited.empty())
    for (char** entry = environ; *entry; ++entry) inherited.emplace_back(*entry);
  constexpr std::string_view kTunables = "GLIBC_TUNABLES=";
  std::string_view tunables;
  for (const std::string& entry : inherited)
    if (entry.starts_with(kTunables)) tunables = std::string_view(entry).substr(kTunables.size());
  Environment changes = fork_server_environment(tunables);
  changes.emplace_back(kForkServerEnv, std::to_string(kInheritedFd));

  log_start = file_size(options.log_path);
  const auto pid = spawn({.executable = options.executable,
                          .args = options.args,
                          .env = merge_environment(std::move(inherited), changes),
                          .directory = options.directory,
                          .log_path = options.log_path,
                          .inherited_fd = theirs.get()});
  if (!pid) return tl::unexpected(pid.error());
  Fd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, *pid, 0)));
  if (!pidfd) {
    auto error = fail_errno("pidfd_open of the fork server");
    ::kill(*pid, SIGKILL);
    ::waitpid(*pid, nullptr, 0);
    return error;
  }
  server_pid = *pid;
  server = std::move(pidfd);
  socket = std::move(ours);
  phase = Phase::starting;
  forked_in_life = wants_out = false;
  add(socket.get());
  add(server.get());
  set_timer(options.ready_timeout);
  return {};
}

void ForkServer::State::set_timer(Duration after) {
  itimerspec when{};
  when.it_value.tv_sec = after.count() / 1'000'000'000;
  when.it_value.tv_nsec = after.count() % 1'000'000'000;
  (void)::timerfd_settime(timer.get(), 0, &when, nullptr);
}

bool ForkServer::State::timer_fired() {
  std::uint64_t times = 0;
  return ::read(timer.get(), &times, sizeof times) == sizeof times;
}

void ForkServer::State::receive() {
  while (socket) {
    auto packet = receive_with_fds(socket, 0);
    if (!packet) {
      if (packet.error().kind == ErrorKind::timed_out) return;
      drop(socket.get());
      socket.reset();  // Its end is seen through its pidfd.
      if (server) (void)kill_worker(server, SIGKILL);
      if (packet.error().kind != ErrorKind::disconnected) fail_for_good(packet.error().text);
      return;
    }
    const auto message = decode_fork_message(packet->bytes);
    if (!message) return fail_for_good(options.executable + ": " + message.error().text);
    on_message(*message, std::move(packet->fds));
  }
}

void ForkServer::State::on_message(const ForkMessage& message, std::vector<Fd> fds) {
  unconfirmed.clear();
  switch (message.kind) {
    case ForkMessage::Kind::ready: return on_ready();
    case ForkMessage::Kind::forked: return on_forked(message, std::move(fds));
    case ForkMessage::Kind::exited: return on_exited(message);
    case ForkMessage::Kind::refused:
      failures = 0;
      if (answer(message.worker))
        events.push_back({.kind = Event::Kind::fork_refused, .worker = message.worker, .text = message.text});
      return;
    case ForkMessage::Kind::fork:
    case ForkMessage::Kind::adopt: break;
  }
  fail_for_good(options.executable + ": a fork server sent a message that is none for an agent");
}

void ForkServer::State::on_ready() {
  if (phase != Phase::starting) return;
  phase = Phase::serving;
  ready_at = steady_now();
  set_timer(Duration::zero());
  if (ever_ready) events.push_back({.kind = Event::Kind::server_restarted, .pid = server_pid});
  ever_ready = true;
  const auto adopt = encode({.kind = ForkMessage::Kind::adopt});
  for (const auto& [id, worker] : workers)
    if (worker.adopted) (void)send_with_fds(socket, *adopt, {worker.pidfd});
}

void ForkServer::State::on_forked(const ForkMessage& message, std::vector<Fd> fds) {
  if (fds.size() != 2 || !answer(message.worker))
    return fail_for_good(options.executable + ": a fork server forked what it was not asked for");
  failures = 0;
  forked_in_life = true;
  Fd own(::fcntl(fds[0].get(), F_DUPFD_CLOEXEC, 0));
  if (!own) {
    (void)kill_worker(fds[0], SIGKILL);
    events.push_back({.kind = Event::Kind::fork_refused,
                      .worker = message.worker,
                      .text = fail_errno("no descriptor for a new worker").value().text});
    return;
  }
  workers.insert_or_assign(message.worker, Worker{.pid = message.pid, .pidfd = std::move(own)});
  events.push_back({.kind = Event::Kind::forked,
                    .worker = message.worker,
                    .pid = message.pid,
                    .pidfd = std::move(fds[0]),
                    .socket = std::move(fds[1])});
}

void ForkServer::State::on_exited(const ForkMessage& message) {
  const auto known = workers.find(message.worker);
  if (known == workers.end() || known->second.adopted) return;
  events.push_back(
      {.kind = Event::Kind::exited, .worker = message.worker, .pid = known->second.pid, .exit = message.exit});
  unconfirmed.push_back(std::move(known->second.pidfd));
  workers.erase(known);
}

bool ForkServer::State::answer(WorkerId worker) {
  return std::erase_if(pending, [&](const Pending& request) { return request.worker == worker && request.sent; }) > 0;
}

void ForkServer::State::send_requests() {
  if (phase != Phase::serving || !socket) return;
  auto in_flight =
      static_cast<std::size_t>(std::count_if(pending.begin(), pending.end(), [](const Pending& p) { return p.sent; }));
  bool full = false;
  for (Pending& request : pending) {
    if (request.sent) continue;
    if (in_flight == kSentMax) break;
    const auto sent = send_with_fds(socket, request.bytes, {});
    if (!sent) {
      full = sent.error().kind == ErrorKind::overloaded;
      break;  // A server that hung up is seen by receive().
    }
    request.sent = true;
    ++in_flight;
  }
  if (full == wants_out) return;
  wants_out = full;
  epoll_event event{.events = full ? EPOLLIN | EPOLLOUT : static_cast<std::uint32_t>(EPOLLIN),
                    .data = {.fd = socket.get()}};
  (void)::epoll_ctl(epoll.get(), EPOLL_CTL_MOD, socket.get(), &event);
}

void ForkServer::State::on_server_ended(const Exit& exit) {
  receive();  // What it said before.
  drop(server.get());
  server.reset();
  if (socket) drop(socket.get());
  socket.reset();
  server_pid = -1;
  set_timer(Duration::zero());
  for (const Fd& ended : unconfirmed) (void)try_reap(ended.get());
  unconfirmed.clear();
  for (auto& [id, worker] : workers) {
    if (worker.adopted) continue;
    worker.adopted = true;
    add(worker.pidfd.get());
  }
  if (phase == Phase::over) return;

  const bool asked = std::any_of(pending.begin(), pending.end(), [](const Pending& p) { return p.sent; });
  for (Pending& request : pending) request.sent = false;
  const bool before_ready = phase == Phase::starting;
  const bool failed = before_ready || (!forked_in_life && (asked || steady_now() - ready_at < kShortLife));
  failures = failed ? failures + 1 : 0;
  relaunch(options.executable + " ended (" + to_string(exit) + ")" +
           (before_ready ? " before it was ready to fork workers: is it an actor script, linked with Paceline, and are "
                           "its libraries installed?"
                         : " as soon as it was asked to fork a worker"));
}

void ForkServer::State::relaunch(std::string why) {
  while (failures < kFailuresMax) {
    const auto launched = launch();
    if (launched) return;
    why = launched.error().text;
    ++failures;
  }
  fail_for_good(with_log(why + " (" + std::to_string(kFailuresMax) + " times in a row)"));
}

void ForkServer::State::fail_for_good(std::string why) {
  if (phase == Phase::over) return;
  end_server(why);
  if (server) (void)kill_worker(server, SIGKILL);  // Reaped when its pidfd says so.
  events.push_back({.kind = Event::Kind::server_failed, .text = std::move(why)});
}

void ForkServer::State::end_server(std::string why) {
  phase = Phase::over;
  why_over = std::move(why);
  pending.clear();
  set_timer(Duration::zero());
}

/// It sees that its agent has hung up, and ends its workers and what they left behind; what does not, is killed later.
void ForkServer::State::hang_up() {
  if (socket) drop(socket.get());
  socket.reset();
  if (server) (void)kill_worker(server, SIGCONT);
}

void ForkServer::State::reap_adopted() {
  for (auto it = workers.begin(); it != workers.end();) {
    const Worker& worker = it->second;
    const auto exit = worker.adopted ? try_reap(worker.pidfd.get(), WNOWAIT) : std::nullopt;
    if (!exit) {
      ++it;
      continue;
    }
    ::kill(-worker.pid,
           SIGKILL);  // What it left running in its session; not reaped yet, so the number is still its own.
    (void)try_reap(worker.pidfd.get());
    events.push_back({.kind = Event::Kind::exited, .worker = it->first, .pid = worker.pid, .exit = *exit});
    drop(worker.pidfd.get());
    it = workers.erase(it);
  }
}

std::string ForkServer::State::with_log(std::string text) const {
  const std::string tail = log_tail(options.log_path, log_start, kLogLines);
  return text + (tail.empty() ? "; it wrote nothing to " + options.log_path
                              : "; its log " + options.log_path + " ends: " + tail);
}

ForkServer::State::~State() {
  const Instant deadline = steady_now() + std::chrono::seconds(5);
  phase = Phase::over;  // Nothing is started any more.
  if (server) {
    hang_up();
    wait_ended(server.get(), steady_now() + kHangUpPatience);
    (void)kill_worker(server, SIGKILL);
    wait_ended(server.get(), deadline);
    if (const auto exit = try_reap(server.get())) on_server_ended(*exit);
  }
  for (const auto& [id, worker] : workers) {
    if (worker.adopted) ::kill(-worker.pid, SIGKILL);
    (void)kill_worker(worker.pidfd, SIGKILL);
  }
  for (const auto& [id, worker] : workers) wait_ended(worker.pidfd.get(), deadline);
  reap_adopted();
}

ForkServer::ForkServer(std::unique_ptr<State> state) : state_(std::move(state)) {}
ForkServer::ForkServer(ForkServer&&) noexcept = default;
ForkServer& ForkServer::operator=(ForkServer&&) noexcept = default;
ForkServer::~ForkServer() = default;

Result<ForkServer> ForkServer::start(Options options) {
  if (options.executable.empty() || options.executable[0] != '/')
    return fail(ErrorKind::invalid, "fork server executable '" + options.executable + "' is no absolute path");
  if (options.ready_timeout <= Duration::zero())
    return fail(ErrorKind::invalid, "a fork server's ready_timeout must be above 0");
  auto state = std::make_unique<State>(std::move(options));
  state->epoll.reset(::epoll_create1(EPOLL_CLOEXEC));
  state->timer.reset(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!state->epoll || !state->timer) return fail_errno("epoll and timer for the fork server");
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1) < 0) return fail_errno("become a child subreaper");
  state->add(state->timer.get());
  PACELINE_TRY(state->launch());
  return ForkServer(std::move(state));
}

Result<void> ForkServer::fork(const ForkRequest& request) {
  State& s = *state_;
  if (s.phase == State::Phase::over)
    return fail(ErrorKind::disconnected, "the fork server of " + s.options.executable + " has ended: " + s.why_over);
  const auto same = [&](const State::Pending& p) { return p.worker == request.worker; };
  if (s.workers.contains(request.worker) || std::any_of(s.pending.begin(), s.pending.end(), same))
    return fail(ErrorKind::invalid, "worker " + to_string(request.worker) + " runs already");
  auto bytes =
      encode({.kind = ForkMessage::Kind::fork, .worker = request.worker, .text = request.log_path, .env = request.env});
  if (!bytes) return tl::unexpected(bytes.error());
  s.pending.push_back({.worker = request.worker, .bytes = std::move(*bytes)});
  s.send_requests();
  return {};
}

void ForkServer::retire() {
  State& s = *state_;
  if (s.phase == State::Phase::over) return;
  s.end_server("it was not needed any more");
  if (!s.workers.empty()) return (void)kill_worker(s.server, SIGKILL);  // It would end them.
  s.hang_up();
  s.set_timer(kHangUpPatience);
}

bool ForkServer::is_empty() const {
  return state_->phase == State::Phase::over && !state_->server && state_->workers.empty();
}

int ForkServer::descriptor() const { return state_->epoll.get(); }
pid_t ForkServer::pid() const { return state_->phase == State::Phase::over ? -1 : state_->server_pid; }

std::vector<ForkServer::Event> ForkServer::events() {
  State& s = *state_;
  s.receive();
  const bool due = s.timer_fired();
  if (due && s.phase == State::Phase::over && s.server) (void)kill_worker(s.server, SIGKILL);
  if (due && s.phase == State::Phase::starting)
    s.fail_for_good(s.with_log(s.options.executable + " did not become ready to fork workers within " +
                               std::to_string(s.options.ready_timeout / std::chrono::milliseconds(1)) +
                               " ms: is it an actor script, linked with Paceline?"));
  if (s.server)
    if (const auto exit = try_reap(s.server.get())) s.on_server_ended(*exit);
  s.reap_adopted();
  s.send_requests();
  return std::exchange(s.events, {});
}

}  // namespace paceline::process
