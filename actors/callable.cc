#include "actors/callable.h"

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>

namespace paceline::actors {
namespace {

/// Addresses of a process lie in between, but for those of an executable that is linked to a fixed place, where they
/// are the same in all its processes. Few numbers do: a glance at these spares the look into the kernel's table.
constexpr std::uint64_t kLowest = std::uint64_t{1} << 32;
constexpr std::uint64_t kHighest = std::uint64_t{1} << 47;

bool is_mapped(std::uint64_t address) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::uint64_t begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64, &begin, &end) == 2 && begin <= address && address < end)
      return true;
  }
  return false;
}

}  // namespace

Result<void> check_captures(std::span<const std::byte> captures) {
  for (std::size_t at = 0; at + sizeof(std::uint64_t) <= captures.size(); at += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, captures.data() + at, sizeof word);
    if (word >= kLowest && word < kHighest && is_mapped(word))
      return fail(ErrorKind::invalid,
                  "a lambda captures by reference, or a pointer: workers are other processes; capture values by copy, "
                  "or pass them as arguments");
  }
  return {};
}

}  // namespace paceline::actors
