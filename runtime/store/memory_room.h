#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace paceline::store {

/// Bytes that this process may still take without being killed for it: the least of MemAvailable and, for its cgroup
/// (v2 or v1) and every one above it, limit - usage + reclaimable file pages. `root` is prefixed to every path that is
/// read ("" is this machine). What cannot be read does not limit.
std::uint64_t available_bytes(const std::string& root = "");

/// What there would be if nobody had any: the least of MemTotal and the limits of those cgroups.
std::uint64_t total_bytes(const std::string& root = "");

/// Memory of a process that is in RAM. 0: there is no such process.
std::uint64_t resident_bytes(pid_t process);
/// What of it the process has for itself: without files and shared memory, with what it has in common with its parent
/// since a fork.
std::uint64_t private_bytes(pid_t process);

/// `infeasible`, with both figures in MiB and what to do, unless `bytes` are available and a little is left for
/// everything else. `what` begins the sentence: "windows".
Result<void> check_room(std::string_view what, std::uint64_t bytes, const std::string& root = "");

}  // namespace paceline::store
