#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/result.h"

namespace paceline::cli {

struct StackFrame {
  std::uint64_t address = 0;
  std::string function{};  ///< As C++ writes it; empty: unknown.
  std::string object{};    ///< The file that holds it; empty: unknown.
  std::string file{};      ///< Of its source; empty: no debug information.
  int line = 0;
  bool inlined = false;  ///< Into the next one, whose address this is.
};

struct ThreadStack {
  pid_t thread = 0;
  std::string name{};                ///< As the kernel has it.
  std::vector<StackFrame> frames{};  ///< The innermost first; at most kFramesMax.
  std::string cut{};                 ///< Why there are not all of them; empty: there are.
};

inline constexpr std::size_t kFramesMax = 256;

/// Where all threads of a process of this machine stand, its first thread first. Each stands still while its frames are
/// read, and goes on. `invalid`: it may not be looked into, says what to change; `not_found`: it has ended.
Result<std::vector<ThreadStack>> stacks_of(pid_t process);

}  // namespace paceline::cli
