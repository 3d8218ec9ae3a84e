#include "runtime/process/exit.h"

#include <string.h>

namespace paceline::process {

std::string to_string(const Exit& exit) {
  if (!exit.signalled) return "exit status " + std::to_string(exit.code);
  const char* name = sigabbrev_np(exit.code);
  const char* description = sigdescr_np(exit.code);
  if (!name) return "killed by signal " + std::to_string(exit.code);
  return std::string("killed by SIG") + name + " (" + (description ? description : "unknown") + ")";
}

}  // namespace paceline::process
