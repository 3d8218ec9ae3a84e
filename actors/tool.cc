#include "actors/tool.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

extern char** environ;

namespace paceline::actors {
namespace {

int spawn(const std::string& program, std::vector<std::string>& words, int in, int out, pid_t& pid) {
  std::string name = "paceline";
  std::vector<char*> arguments{name.data()};
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
  const int error = posix_spawnp(&pid, program.c_str(), &actions, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

}  // namespace

Result<Tool> Tool::start(const std::string& executable, std::vector<std::string> words) {
  std::array<int, 2> to{};
  std::array<int, 2> from{};
  if (pipe2(to.data(), O_CLOEXEC) < 0) return fail_errno("pipe");
  if (pipe2(from.data(), O_CLOEXEC) < 0) {
    for (const int fd : to) close(fd);
    return fail_errno("pipe");
  }
  Tool tool(-1, to[1], from[0]);
  int error = ENOENT;
  const std::string beside = executable.substr(0, executable.rfind('/') + 1) + "paceline";
  for (const std::string& program : {beside, std::string("paceline"), std::string(PACELINE_TOOL)}) {
    error = spawn(program, words, to[0], from[1], tool.pid_);
    if (error == 0) break;
    tool.pid_ = -1;
  }
  close(to[0]);
  close(from[1]);
  if (error != 0) return fail(ErrorKind::not_found, std::strerror(error));
  return tool;
}

Tool::Tool(Tool&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), in_(std::exchange(other.in_, -1)), out_(std::exchange(other.out_, -1)) {}

Tool::~Tool() {
  for (const int fd : {in_, out_})
    if (fd >= 0) close(fd);
  if (pid_ < 0) return;
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

std::string Tool::read_line() {
  std::string line;
  char c = 0;
  while (true) {
    const auto got = read(out_, &c, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0 || c == '\n') return line;
    line += c;
  }
}

}  // namespace paceline::actors
