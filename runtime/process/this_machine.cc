#include "runtime/process/this_machine.h"

#include <unistd.h>

#include <climits>
#include <fstream>

namespace paceline::process {

std::string this_machine() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot;
  std::getline(file, boot);
  char space[PATH_MAX];
  const auto size = ::readlink("/proc/self/ns/pid", space, sizeof space);
  return boot + " " + std::string(space, size > 0 ? static_cast<std::size_t>(size) : 0);
}

}  // namespace paceline::process
