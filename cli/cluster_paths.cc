#include "cli/cluster_paths.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <utility>

namespace paceline::cli {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kNameMax = 40;
constexpr const char* kSupervisorFile = "supervisor.pid";
// A Unix socket's path has at most 107 characters; the folder's own files need some of them.
constexpr std::size_t kDirectoryMax = 80;

bool is_own_folder(const fs::path& path, uid_t user) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == user;
}

/// Opens `path` and locks it; -1 if somebody else has it locked or it cannot be opened.
OwnedFd try_lock(const fs::path& path, int flags, int operation) {
  OwnedFd fd(::open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (fd.get() >= 0 && ::flock(fd.get(), operation) == 0) return fd;
  return OwnedFd();
}

bool is_held(const fs::path& path) {
  const OwnedFd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  return fd.get() >= 0 && ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

/// Held while folders are made or swept: nobody sees a folder whose lock is not taken yet.
OwnedFd lock_root(const RuntimeRoot& root) { return try_lock(root.path / ".lock", O_RDWR | O_CREAT, LOCK_EX); }

/// The number that stands there, while its process lives.
std::optional<pid_t> process_in(const fs::path& path) {
  pid_t pid = 0;
  if (!is_held(path) || !(std::ifstream(path) >> pid) || pid <= 1) return std::nullopt;
  return pid;
}

std::vector<std::string> names(const RuntimeRoot& root) {
  std::vector<std::string> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(root.path, ignored)) {
    const std::string name = entry.path().filename().string();
    if (entry.is_directory(ignored) && check_cluster_name(name)) found.push_back(name);
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<std::string> sweep_locked(const RuntimeRoot& root) {
  std::vector<std::string> removed;
  for (const std::string& name : names(root)) {
    if (is_running(root.path / name)) continue;
    std::error_code failed;
    fs::remove_all(root.path / name, failed);
    if (!failed) removed.push_back(name);
  }
  return removed;
}

}  // namespace

OwnedFd::OwnedFd(OwnedFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
OwnedFd& OwnedFd::operator=(OwnedFd&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}
OwnedFd::~OwnedFd() {
  if (fd_ >= 0) ::close(fd_);
}

Result<RuntimeRoot> RuntimeRoot::open() {
  const uid_t user = ::getuid();
  const char* xdg = std::getenv("XDG_RUNTIME_DIR");
  if (xdg && *xdg == '/' && is_own_folder(xdg, user)) return open_at(fs::path(xdg) / "paceline", user);
  return open_at("/tmp/paceline-" + std::to_string(user), user);
}

Result<RuntimeRoot> RuntimeRoot::open_at(fs::path path, uid_t user) {
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
    return fail_errno("cannot make the runtime folder " + path.string());
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) return fail_errno("cannot read the runtime folder " + path.string());
  if (!S_ISDIR(info.st_mode) || info.st_uid != user || (info.st_mode & 077) != 0) {
    return fail(ErrorKind::invalid,
                "runtime folder " + path.string() +
                    " is not a folder of yours with mode 0700: remove it, or set XDG_RUNTIME_DIR to one that is");
  }
  return RuntimeRoot{std::move(path)};
}

Result<void> check_cluster_name(std::string_view name) {
  const bool fine = !name.empty() && name.size() <= kNameMax && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  });
  if (fine) return {};
  return fail(ErrorKind::invalid, "cluster name '" + std::string(name) + "': use 1 to " + std::to_string(kNameMax) +
                                      " of a-z, 0-9, - and _");
}

Result<ClaimedDirectory> claim_directory(const RuntimeRoot& root, const std::string& name) {
  PACELINE_TRY(check_cluster_name(name));
  const fs::path path = root.path / name;
  if (path.native().size() > kDirectoryMax) {
    return fail(ErrorKind::invalid, "runtime folder " + path.string() + " is longer than " +
                                        std::to_string(kDirectoryMax) +
                                        " characters, too long for sockets: set XDG_RUNTIME_DIR to a shorter one");
  }
  const OwnedFd held = lock_root(root);
  if (held.get() < 0) return fail_errno("cannot lock " + (root.path / ".lock").string());
  sweep_locked(root);
  if (::mkdir(path.c_str(), 0700) != 0) {
    if (errno != EEXIST) return fail_errno("cannot make " + path.string());
    return fail(ErrorKind::invalid, "cluster '" + name + "' is already up: stop it with `paceline down --name " + name +
                                        "` or choose another --name");
  }
  OwnedFd lock = try_lock(path / "lock", O_RDWR | O_CREAT | O_EXCL, LOCK_EX | LOCK_NB);
  if (lock.get() < 0) return fail_errno("cannot lock " + (path / "lock").string());
  return ClaimedDirectory{path, std::move(lock)};
}

bool is_running(const fs::path& directory) { return is_held(directory / "lock"); }

std::optional<ClusterId> running_cluster(const fs::path& directory) {
  struct stat info {};
  if (!is_running(directory) || ::stat((directory / "lock").c_str(), &info) != 0) return std::nullopt;
  return ClusterId{info.st_dev, info.st_ino};
}

std::vector<pid_t> processes_of(const fs::path& directory) {
  std::vector<pid_t> processes;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(directory, ignored)) {
    const auto pid = entry.path().extension() == ".pid" ? process_in(entry.path()) : std::nullopt;
    if (!pid) continue;
    const bool first = entry.path().filename() == kSupervisorFile;
    processes.insert(first ? processes.begin() : processes.end(), *pid);
  }
  return processes;
}

std::optional<pid_t> supervisor_of(const fs::path& directory) { return process_in(directory / kSupervisorFile); }

std::vector<std::string> sweep_stale(const RuntimeRoot& root) {
  const OwnedFd held = lock_root(root);
  return held.get() < 0 ? std::vector<std::string>{} : sweep_locked(root);
}

std::vector<std::string> running_clusters(const RuntimeRoot& root) {
  std::vector<std::string> running = names(root);
  std::erase_if(running, [&](const std::string& name) { return !is_running(root.path / name); });
  return running;
}

Result<fs::path> find_cluster(const RuntimeRoot& root, const std::string& named) {
  const char* variable = std::getenv("PACELINE_CLUSTER");
  const std::string wanted = !named.empty() ? named : variable && *variable ? variable : "default";
  fs::path path = wanted;
  if (wanted.front() != '/') {
    PACELINE_TRY(check_cluster_name(wanted));
    path = root.path / wanted;
  }
  if (is_running(path)) return path;
  std::string others;
  for (const std::string& name : running_clusters(root)) others += (others.empty() ? "" : ", ") + name;
  return fail(ErrorKind::not_found, "no cluster '" + wanted + "' is up" +
                                        (others.empty() ? ": start one with `paceline up`" : "; these are: " + others));
}

Result<fs::path> find_any_cluster(const RuntimeRoot& root, const std::string& named) {
  auto directory = find_cluster(root, named);
  const auto running = running_clusters(root);
  const bool asked_for_one = !named.empty() || std::getenv("PACELINE_CLUSTER");
  if (!directory && !asked_for_one && running.size() == 1) return root.path / running.front();
  return directory;
}

Result<fs::path> find_any_cluster(const std::string& named) {
  const auto root = RuntimeRoot::open();
  if (!root) return tl::unexpected(root.error());
  sweep_stale(*root);
  return find_any_cluster(*root, named);
}

}  // namespace paceline::cli
