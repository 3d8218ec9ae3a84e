#include "runtime/process/spawn.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace paceline::process {
namespace {

// 32 MiB is the largest threshold that glibc takes; above it every tensor is mapped and faulted in anew.
constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kTunables{{
    {"glibc.malloc.hugetlb", "1"},
    {"glibc.malloc.mmap_threshold", "33554432"},
    {"glibc.malloc.trim_threshold", "1073741824"},
}};

bool sets(std::string_view tunables, std::string_view name) {
  while (!tunables.empty()) {
    const std::string_view entry = tunables.substr(0, tunables.find(':'));
    if (entry.substr(0, entry.find('=')) == name) return true;
    tunables.remove_prefix(std::min(entry.size() + 1, tunables.size()));
  }
  return false;
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> all;
  all.reserve(texts.size() + 1);
  for (const std::string& text : texts) all.push_back(const_cast<char*>(text.c_str()));
  all.push_back(nullptr);
  return all;
}

struct Spawning {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  Spawning() {
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
  }
  ~Spawning() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
  Spawning(const Spawning&) = delete;
  Spawning& operator=(const Spawning&) = delete;
};

}  // namespace

std::vector<std::string> merge_environment(std::vector<std::string> inherited, const Environment& changes) {
  std::vector<std::string> merged = std::move(inherited);
  const auto name_of = [](std::string_view entry) { return entry.substr(0, entry.find('=')); };
  for (const auto& [name, value] : changes) {
    std::erase_if(merged, [&, &changed = name](const std::string& entry) { return name_of(entry) == changed; });
    merged.push_back(name + "=" + value);
  }
  return merged;
}

Environment fork_server_environment(std::string_view user_tunables) {
  std::string tunables;
  for (const auto& [name, value] : kTunables) {
    if (sets(user_tunables, name)) continue;
    if (!tunables.empty()) tunables += ':';
    tunables.append(name).append("=").append(value);
  }
  if (!tunables.empty() && !user_tunables.empty()) tunables += ':';
  tunables += user_tunables;
  return {
      {"OPENBLAS_NUM_THREADS", "1"}, {"OMP_NUM_THREADS", "1"}, {"MKL_NUM_THREADS", "1"}, {"GLIBC_TUNABLES", tunables}};
}

Result<pid_t> spawn(const SpawnOptions& options) {
  // Tried here first: posix_spawn could not say which of its file actions failed.
  if (!options.directory.empty()) {
    const int directory = ::open(options.directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0 || ::faccessat(directory, ".", X_OK, 0) < 0) {
      const int error = errno;
      if (directory >= 0) ::close(directory);
      return fail(ErrorKind::not_found, "start " + options.executable + " in " + options.directory +
                                            ", where its driver works: " + std::strerror(error));
    }
    ::close(directory);
  }
  if (!options.log_path.empty()) {
    const int log = ::open(options.log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (log < 0) return fail_errno("open log " + options.log_path);
    ::close(log);
  }

  Spawning s;
  if (!options.directory.empty()) posix_spawn_file_actions_addchdir_np(&s.actions, options.directory.c_str());
  if (options.inherited_fd >= 0) posix_spawn_file_actions_adddup2(&s.actions, options.inherited_fd, kInheritedFd);
  for (const int fd : options.kept) posix_spawn_file_actions_adddup2(&s.actions, fd, fd);  // Not close-on-exec there.
  if (options.kept.empty())
    posix_spawn_file_actions_addclosefrom_np(&s.actions, options.inherited_fd >= 0 ? kInheritedFd + 1 : kInheritedFd);
  posix_spawn_file_actions_addopen(&s.actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  if (!options.log_path.empty()) {
    posix_spawn_file_actions_addopen(&s.actions, STDOUT_FILENO, options.log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND,
                                     0600);
    posix_spawn_file_actions_adddup2(&s.actions, STDOUT_FILENO, STDERR_FILENO);
  }

  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&s.attributes, &none);
  posix_spawnattr_setsigdefault(&s.attributes, &all);
  const int session = options.own_session ? POSIX_SPAWN_SETSID : 0;
  posix_spawnattr_setflags(&s.attributes, static_cast<short>(session | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF));

  std::vector<std::string> arguments{options.called.empty() ? options.executable : options.called};
  arguments.insert(arguments.end(), options.args.begin(), options.args.end());
  std::vector<char*> argv = pointers(arguments), envp = pointers(options.env);
  pid_t pid = -1;
  const int error = posix_spawn(&pid, options.executable.c_str(), &s.actions, &s.attributes, argv.data(), envp.data());
  if (error == 0) return pid;
  const std::string why = "start " + options.executable + ": " + std::strerror(error);
  switch (error) {
    case ENOENT:
      return fail(ErrorKind::not_found, why + " (the executable, or the interpreter or loader that it names)");
    case EACCES: return fail(ErrorKind::invalid, why + " (is it an executable file? chmod +x)");
    case ENOEXEC: return fail(ErrorKind::invalid, why + " (it is no program of this machine)");
    case EAGAIN:
    case ENOMEM: return fail(ErrorKind::infeasible, why + " (limit on processes or memory: ulimit -u, pids.max)");
    default: return fail(ErrorKind::internal, why);
  }
}

}  // namespace paceline::process
