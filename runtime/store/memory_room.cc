#include "runtime/store/memory_room.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>

namespace paceline::store {

namespace {

constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();
/// Left to everything else on the machine; beyond it the kernel starts to kill processes.
constexpr std::uint64_t kReserve = 32ull << 20;

/// The first word of a file as a number; nullopt: no file, or no number ("max").
std::optional<std::uint64_t> read_number(const std::string& path) {
  std::ifstream file(path);
  std::uint64_t value = 0;
  if (file >> value) return value;
  return std::nullopt;
}

/// The number behind `key` in lines of "key number ..."; 0 if there is none.
std::uint64_t read_field(const std::string& path, std::string_view key) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string name;
    std::uint64_t value = 0;
    if (words >> name >> value && name == key) return value;
  }
  return 0;
}

struct CgroupFiles {
  const char* limit;
  const char* usage;
  const char* reclaimable;  ///< In memory.stat: pages of files, which the kernel drops when it needs room.
};
constexpr CgroupFiles kV2{"memory.max", "memory.current", "inactive_file"};
constexpr CgroupFiles kV1{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"};

/// What a cgroup lets its processes have: in all, or still.
using BytesOf = std::uint64_t(const std::string& folder, const CgroupFiles& files);

std::uint64_t room_of(const std::string& folder, const CgroupFiles& files) {
  const auto limit = read_number(folder + '/' + files.limit);
  const auto usage = read_number(folder + '/' + files.usage);
  if (!limit || !usage) return kUnlimited;
  const std::uint64_t used = *usage - std::min(*usage, read_field(folder + "/memory.stat", files.reclaimable));
  return *limit - std::min(*limit, used);
}

std::uint64_t limit_of(const std::string& folder, const CgroupFiles& files) {
  return read_number(folder + '/' + files.limit).value_or(kUnlimited);
}

/// The least from `path` ("/a/b") up to the top of the hierarchy at `mount`.
std::uint64_t least_up_from(const std::string& mount, std::string path, const CgroupFiles& files, BytesOf bytes_of) {
  std::uint64_t least = kUnlimited;
  for (;;) {
    while (!path.empty() && path.back() == '/') path.pop_back();
    least = std::min(least, bytes_of(mount + path, files));
    if (path.empty()) return least;
    path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  }
}

bool names_memory(const std::string& controllers) {
  std::istringstream list(controllers);
  for (std::string name; std::getline(list, name, ',');)
    if (name == "memory") return true;
  return false;
}

/// The least of what the machine has, in this line of /proc/meminfo, and what our cgroups let us have.
std::uint64_t least(const std::string& root, std::string_view of_machine, BytesOf bytes_of) {
  std::uint64_t room = kUnlimited;
  if (const std::uint64_t kib = read_field(root + "/proc/meminfo", of_machine); kib > 0) room = kib << 10;
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // "4:memory:/a/b" (v1) or "0::/a/b" (v2).
    const auto first = line.find(':');
    const auto second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (controllers.empty()) {
      room = std::min(room, least_up_from(root + "/sys/fs/cgroup", path, kV2, bytes_of));
      room = std::min(room, least_up_from(root + "/sys/fs/cgroup/unified", path, kV2, bytes_of));
    } else if (names_memory(controllers)) {
      room = std::min(room, least_up_from(root + "/sys/fs/cgroup/memory", path, kV1, bytes_of));
    }
  }
  return room;
}

struct InMemory {
  std::uint64_t all = 0, shared = 0;  ///< Bytes.
};

InMemory in_memory(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/statm");
  std::uint64_t mapped = 0, resident = 0, shared = 0;
  if (!(file >> mapped >> resident >> shared)) return {};
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return {resident * page, shared * page};
}

}  // namespace

std::uint64_t available_bytes(const std::string& root) { return least(root, "MemAvailable:", room_of); }
std::uint64_t total_bytes(const std::string& root) { return least(root, "MemTotal:", limit_of); }

std::uint64_t resident_bytes(pid_t process) { return in_memory(process).all; }

std::uint64_t private_bytes(pid_t process) {
  const auto resident = in_memory(process);
  return resident.all - std::min(resident.all, resident.shared);
}

Result<void> check_room(std::string_view what, std::uint64_t bytes, const std::string& root) {
  const std::uint64_t room = available_bytes(root);
  const std::uint64_t usable = room - std::min(room, kReserve);
  if (bytes <= usable) return {};
  const auto mib_up = [](std::uint64_t b) { return std::to_string((b >> 20) + ((b & ((1u << 20) - 1)) != 0 ? 1 : 0)); };
  return fail(ErrorKind::infeasible, std::string(what) + " need " + mib_up(bytes) + " MiB, " +
                                         std::to_string(usable >> 20) +
                                         " MiB are available: fewer workers, or a strategy with fewer buffers");
}

}  // namespace paceline::store
