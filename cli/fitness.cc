#include "cli/fitness.h"

#include <algorithm>

#include "runtime/observe/format.h"

namespace paceline::cli {

namespace {

using Verdict = Finding::Verdict;

constexpr double kGiB = 1024.0 * 1024 * 1024;
constexpr double kMemoryForAJob = 2 * kGiB;     // Four small workers with libtorch take about 1 GB, a compiler up to 2.
constexpr double kDiskForARun = 1 * kGiB;       // Checkpoints, traces, compiled scripts.
constexpr std::uint64_t kDescriptorsMin = 256;  // What one agent with eight workers was tested with.
constexpr std::uint64_t kDescriptorsGood = 1024;

std::string gib(double bytes) { return observe::format("%.1f GiB", bytes / kGiB); }

Finding cores(const Machine& machine) {
  const double usable = std::min<double>(static_cast<double>(machine.cores),
                                         machine.core_limit.value_or(static_cast<double>(machine.cores)));
  Finding finding{"cores", std::to_string(machine.cores), Verdict::good,
                  observe::format("workers up to %.0f have a core each", std::max(1.0, usable))};
  if (machine.core_limit && *machine.core_limit < static_cast<double>(machine.cores))
    finding.value += observe::format(", of which the container may use %.1f", *machine.core_limit);
  if (machine.load > 0.5 * usable) {
    finding.value += observe::format(", and %.1f processes want one", machine.load);
    finding.verdict = Verdict::slow;
    finding.mend = "other programs are at work: workers will be late, now this one, now that one";
  }
  return finding;
}

Finding descriptors(const Machine& machine) {
  const std::string value = std::to_string(machine.descriptors);
  if (machine.descriptors < kDescriptorsMin)
    return {"descriptors", value, Verdict::bad, "an agent needs a dozen a worker: `ulimit -n 4096`"};
  if (machine.descriptors < kDescriptorsGood)
    return {"descriptors", value, Verdict::slow, "enough for some twenty workers; more with `ulimit -n 4096`"};
  return {"descriptors", value, Verdict::good, ""};
}

Finding huge_pages(const Machine& machine) {
  const std::string value = machine.shared_huge_pages.empty() ? "unknown" : machine.shared_huge_pages;
  if (value == "advise" || value == "always" || value == "within_size") return {"huge pages", value, Verdict::good, ""};
  return {"huge pages", value, Verdict::good,
          "for models of 100 MB and more averaging may gain from `echo advise > "
          "/sys/kernel/mm/transparent_hugepage/shmem_enabled`"};
}

Finding compiler(const Machine& machine) {
  if (machine.compiler_found) return {"compiler", machine.compiler, Verdict::good, ""};
  return {"compiler", machine.compiler + " is not there", Verdict::bad,
          "scripts cannot be compiled: apt-get install g++, or build Paceline again"};
}

Finding libtorch(const Machine& machine) {
  if (machine.libtorch == "none")
    return {"libtorch", "none", Verdict::good, "actors and tasks only; training needs a build with it"};
  if (machine.system_libtorch_without_openblas)
    return {"libtorch", machine.libtorch + ", with the reference BLAS", Verdict::slow,
            "matrix products are 30 times slower than they could be: apt-get install libopenblas0-pthread"};
  return {"libtorch", machine.libtorch, Verdict::good, ""};
}

Finding at_least(const char* what, double bytes, double wanted, const char* mend) {
  return {what, gib(bytes) + " available", bytes < wanted ? Verdict::bad : Verdict::good, bytes < wanted ? mend : ""};
}

Finding folder(const char* what, const Result<void>& state) {
  return {what, state ? "can be used" : state.error().text, state ? Verdict::good : Verdict::bad, ""};
}

}  // namespace

std::vector<Finding> findings_of(const Machine& machine) {
  return {cores(machine),
          at_least("memory", static_cast<double>(machine.memory), kMemoryForAJob,
                   "four small workers with libtorch take about 1 GB, compiling a script up to 2"),
          at_least("disk", static_cast<double>(machine.disk), kDiskForARun,
                   "runs write checkpoints and traces: free some, or give --run-dir another place"),
          descriptors(machine),
          huge_pages(machine),
          compiler(machine),
          libtorch(machine),
          {"GPU", machine.gpu ? "there is one" : "none", Verdict::good, machine.gpu ? "it is not used yet" : ""},
          folder("runtime folder", machine.runtime_folder),
          folder("cache of scripts", machine.cache)};
}

const char* to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::good: return "good";
    case Verdict::slow: return "slow";
    case Verdict::bad: return "bad";
  }
  return "bad";
}

}  // namespace paceline::cli
