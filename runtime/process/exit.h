#pragma once

#include <string>

namespace paceline::process {

/// How a process ended.
struct Exit {
  bool signalled = false;
  int code = 0;  ///< Exit status, or the signal's number.

  bool operator==(const Exit&) const = default;
};

/// "exit status 3" or "killed by SIGSEGV (Segmentation fault)".
std::string to_string(const Exit& exit);

}  // namespace paceline::process
