#include "actors/embedded_cluster.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

extern char** environ;

namespace paceline::actors {
namespace {

/// In a session of its own: Ctrl-C is ours.
int spawn_tool(const std::string& tool, int in, int out, pid_t& pid) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
  std::string name = "paceline";
  std::string verb = "embed";
  char* const arguments[] = {name.data(), verb.data(), nullptr};
  const int error = posix_spawnp(&pid, tool.c_str(), &actions, &attributes, arguments, environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

/// One line, without its end; shorter if the other side ends before.
std::string read_line(int fd) {
  std::string line;
  char c = 0;
  while (true) {
    const auto got = read(fd, &c, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0 || c == '\n') return line;
    line += c;
  }
}

}  // namespace

EmbeddedCluster::EmbeddedCluster(EmbeddedCluster&& other) noexcept
    : tool_(std::exchange(other.tool_, -1)),
      pipe_(std::exchange(other.pipe_, -1)),
      directory_(std::move(other.directory_)) {}

EmbeddedCluster::~EmbeddedCluster() {
  if (pipe_ >= 0) close(pipe_);
  if (tool_ < 0) return;
  while (waitpid(tool_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

Result<EmbeddedCluster> EmbeddedCluster::start(const std::string& executable) {
  int to_tool[2];
  int from_tool[2];
  if (pipe2(to_tool, O_CLOEXEC) < 0) return fail_errno("pipe");
  if (pipe2(from_tool, O_CLOEXEC) < 0) {
    for (const int fd : to_tool) close(fd);
    return fail_errno("pipe");
  }
  pid_t pid = -1;
  int error = ENOENT;
  const std::string beside = executable.substr(0, executable.rfind('/') + 1) + "paceline";
  for (const std::string& tool : {beside, std::string("paceline"), std::string(PACELINE_TOOL)}) {
    error = spawn_tool(tool, to_tool[0], from_tool[1], pid);
    if (error == 0) break;
  }
  close(to_tool[0]);
  close(from_tool[1]);
  EmbeddedCluster cluster(error == 0 ? pid : -1, to_tool[1]);
  if (error == 0) cluster.directory_ = read_line(from_tool[0]);
  close(from_tool[0]);
  if (error != 0) {
    return fail(ErrorKind::not_found, std::string("no cluster, and no `paceline` to start one (") +
                                          std::strerror(error) +
                                          "): put it in PATH, or run this program with `paceline run`");
  }
  if (cluster.directory_.empty()) return fail(ErrorKind::not_found, "no cluster to work with: the reason is above");
  return cluster;
}

}  // namespace paceline::actors
