#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/result.h"

namespace paceline::cli {

/// What was found out of a machine.
struct Machine {
  std::int64_t cores = 0;            ///< That this process may use.
  std::optional<double> core_limit;  ///< Of its container, in cores.
  double load = 0;                   ///< Processes that want a core, over the last minute.
  std::uint64_t memory = 0;          ///< Available bytes.
  std::uint64_t descriptors = 0;     ///< That a process may open.
  std::uint64_t disk = 0;            ///< Bytes available in the working directory.
  std::string shared_huge_pages;  ///< What the kernel does for shared memory: "never", "advise", "always"; "": unknown.
  std::string compiler;           ///< Of scripts.
  bool compiler_found = false;
  std::string libtorch;  ///< "1.13.0"; "none": built without.
  bool system_libtorch_without_openblas = false;
  bool gpu = false;
  Result<void> runtime_folder{};  ///< Where sockets lie.
  Result<void> cache{};           ///< Of compiled scripts.
};

/// One thing that a run depends on.
struct Finding {
  enum class Verdict { good, slow, bad };  ///< `slow`: it works; `bad`: something will fail.
  std::string what;
  std::string value;
  Verdict verdict = Verdict::good;
  std::string mend;  ///< What to do; for `good` ones a remark, or nothing.
};

/// Whether a machine is fit to train. Pure.
std::vector<Finding> findings_of(const Machine& machine);
const char* to_string(Finding::Verdict verdict);

}  // namespace paceline::cli
