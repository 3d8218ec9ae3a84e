#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/cluster/process_life.h"
#include "algorithms/cluster/processes.h"
#include "algorithms/cluster/restarts.h"
#include "runtime/base/steady_now.h"
#include "runtime/process/exit.h"
#include "runtime/process/spawn.h"
#include "runtime/transport/zmq/keys.h"

extern char** environ;

namespace paceline::cluster {
namespace {

namespace fs = std::filesystem;
constexpr Duration kEndPatience =
    std::chrono::seconds(2);  // For children that were asked to end: then they are killed.

struct Child {
  std::string name;  ///< For people.
  std::vector<std::string> args;
  Restarts restarts = {};
  bool was_added = false;  ///< While the cluster was up: it goes on without one that cannot be started.
  pid_t pid = -1;
  Instant started = {};
  std::optional<Instant> due = Instant{};  ///< When it is to be started.
};

/// Head and agents, started and started again. No threads.
class Supervisor {
 public:
  Supervisor(ProcessOptions options, ProcessLife& life) : options_(std::move(options)), life_(life) {
    children_.push_back({"the head", {"head"}});
    for (std::int32_t node = 0; node < options_.nodes; ++node) add_agent(node);
  }
  ~Supervisor() { end_all(); }
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  /// They are due at once, under the numbers that follow.
  void add_nodes(std::int32_t more) {
    drop_given_up();
    for (; more > 0 && options_.nodes < kNodesMax; --more) {
      add_agent(options_.nodes++);
      children_.back().was_added = true;
    }
  }

  Result<void> start_due(Instant now) {
    drop_given_up();
    for (Child& child : children_) {
      if (child.pid > 0 || !child.due || now < *child.due) continue;
      auto pid = start(child);
      if (!pid && child.was_added) {
        give_up(child, pid.error().text);
        continue;
      }
      if (!pid) return tl::unexpected(pid.error());
      child.pid = *pid;
      child.started = now;
      child.due.reset();
    }
    return {};
  }

  std::optional<Instant> next_deadline() const {
    std::optional<Instant> next;
    for (const Child& child : children_) next = earlier(next, child.due);
    return next;
  }

  /// Reaps who has ended; true: the head says that the cluster ends.
  Result<bool> on_ended(Instant now) {
    int status = 0;
    for (pid_t pid = 0; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
      for (Child& child : children_) {
        if (child.pid != pid) continue;
        child.pid = -1;
        if (WIFEXITED(status) && WEXITSTATUS(status) == kClusterEnds) return true;
        PACELINE_TRY(plan_start(child, status, now));
      }
    }
    return false;
  }

 private:
  void add_agent(std::int32_t node) {
    const std::string number = std::to_string(node);
    children_.push_back({"agent " + number, {"agent", "--node", number}});
  }

  /// What of the cluster each is told.
  std::vector<std::string> common() const {
    return {"--directory", options_.directory,
            "--name",      options_.name,
            "--nodes",     std::to_string(options_.nodes),
            "--cpus",      std::to_string(options_.cpus),
            "--memory",    std::to_string(options_.memory)};
  }

  static void give_up(Child& child, const std::string& why) {
    std::fprintf(stderr, "paceline: %s: the cluster goes on without %s\n", why.c_str(), child.name.c_str());
    child.due.reset();
  }

  /// Of the highest numbers: later heads do not expect them.
  void drop_given_up() {
    while (children_.back().was_added && children_.back().pid < 0 && !children_.back().due) {
      children_.pop_back();
      --options_.nodes;
    }
  }

  Result<void> plan_start(Child& child, int status, Instant now) {
    const process::Exit exit{WIFSIGNALED(status) != 0, WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status)};
    const std::string how = child.name + " ended (" + process::to_string(exit) + ")";
    // What keeps it from starting keeps it the next time, too: whoever starts the cluster hears it at once.
    if (!exit.signalled && exit.code != 0 && !fs::exists(options_.directory + "/ready"))
      return fail(ErrorKind::disconnected, how + " while the cluster started");
    const auto wait = child.restarts.ended(now - child.started);
    if (!wait && child.was_added) {
      give_up(child, how + " as soon as it was started, again and again");
      return {};
    }
    if (!wait)
      return fail(ErrorKind::disconnected, how + " as soon as it was started, " + std::to_string(Restarts::kBadStarts) +
                                               " times in a row: the cluster ends");
    std::fprintf(stderr, "paceline: %s: it is started again\n", how.c_str());
    child.due = now + *wait;
    return {};
  }

  /// With our output, and the locks that say that the cluster runs.
  Result<pid_t> start(const Child& child) const {
    process::SpawnOptions spawn;
    process::Environment variables;
    for (const auto& [fd, variable] : {std::pair{life_.lock(), kLockVariable}, {life_.lifeline(), kLifelineVariable}}) {
      if (fd < 0) continue;
      spawn.kept.push_back(fd);
      variables.emplace_back(variable, std::to_string(fd));
    }
    std::vector<std::string> environment;
    for (char** entry = environ; *entry; ++entry) environment.emplace_back(*entry);
    spawn.executable = "/proc/self/exe";  // Also where the file was replaced meanwhile.
    spawn.called = fs::read_symlink("/proc/self/exe").string();
    spawn.args = common();
    spawn.args.insert(spawn.args.begin(), child.args.begin(), child.args.end());
    spawn.env = process::merge_environment(std::move(environment), variables);
    spawn.own_session = false;
    return process::spawn(spawn);
  }

  void end_all() {
    for (const Child& child : children_)
      if (child.pid > 0) kill(child.pid, SIGINT);  // SIGTERM would have an agent drain its node first.
    const Instant until = steady_now() + kEndPatience;
    bool killed = false;
    while (true) {
      bool any = false;
      for (Child& child : children_) {
        if (child.pid > 0 && waitpid(child.pid, nullptr, WNOHANG) != 0) child.pid = -1;
        any = any || child.pid > 0;
      }
      if (!any) return;
      if (!killed && steady_now() >= until) {
        killed = true;
        for (const Child& child : children_)
          if (child.pid > 0) kill(child.pid, SIGKILL);
      }
      ::poll(nullptr, 0, 2);
    }
  }

  ProcessOptions options_;  ///< With as many nodes as there are by now.
  ProcessLife& life_;
  std::vector<Child> children_;
};

/// Leaves the lock file, which the next cluster of this name takes over.
void empty_directory(const std::string& directory) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(directory, ignored))
    if (entry.path().filename() != "lock") fs::remove_all(entry.path(), ignored);
}

Result<void> supervise(const ProcessOptions& options, ProcessLife& life) {
  auto loop = EventLoop::create();
  if (!loop) return tl::unexpected(loop.error());
  bool running = true;
  bool ended = true;  // Somebody may have, before the first look.
  std::int32_t more = 0;
  PACELINE_TRY(life.watch(*loop, {.stop = [&](int) { running = false; },
                                  .child = [&] { ended = true; },
                                  .more_nodes = [&](std::int32_t nodes) { more += std::clamp(nodes, 0, kNodesMax); }}));
  const auto keys = transport::make_cluster_keys();
  if (!keys) return tl::unexpected(keys.error());
  PACELINE_TRY(transport::write_keys(keys_path(options.directory), *keys));
  Supervisor supervisor(options, life);
  while (running) {
    const Instant now = steady_now();
    if (std::exchange(ended, false)) {
      const auto over = supervisor.on_ended(now);
      if (!over) return tl::unexpected(over.error());
      if (*over) break;
    }
    supervisor.add_nodes(std::exchange(more, 0));
    PACELINE_TRY(supervisor.start_due(now));
    const auto due = supervisor.next_deadline();
    PACELINE_TRY(loop->run_once(due ? std::max<Duration>(Duration::zero(), *due - steady_now()) : Duration(-1)));
  }
  return {};
}

}  // namespace

Result<void> run_supervisor(const ProcessOptions& options) {
  auto life = ProcessLife::begin(options, "supervisor", true);
  if (!life) return tl::unexpected(life.error());
  auto done = supervise(options, *life);
  if (done) empty_directory(options.directory);  // Else what was said stays for whoever started it.
  return done;
}

}  // namespace paceline::cluster
