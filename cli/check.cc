#include <sched.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>

#include "cli/cluster_paths.h"
#include "cli/commands.h"
#include "cli/compile_settings.h"
#include "cli/fitness.h"
#include "cli/script_cache.h"
#include "runtime/base/json.h"
#include "runtime/observe/table.h"
#include "runtime/store/memory_room.h"

namespace paceline::cli {
namespace {

namespace fs = std::filesystem;

std::int64_t usable_cores() {
  cpu_set_t set;
  return ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : ::sysconf(_SC_NPROCESSORS_ONLN);
}

/// "150000 100000" of cgroup 2 is 1.5 cores, "max 100000" none.
std::optional<double> core_limit() {
  double quota = 0;
  double period = 0;
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  if (!(file >> quota >> period) || period <= 0) return std::nullopt;
  return quota / period;
}

/// "always advise [never]" is never.
std::string chosen_in(const char* path) {
  std::string word;
  for (std::ifstream file(path); file >> word;)
    if (word.starts_with('[') && word.ends_with(']')) return word.substr(1, word.size() - 2);
  return "";
}

bool is_executable(const std::string& program) {
  if (program.find('/') != program.npos) return ::access(program.c_str(), X_OK) == 0;
  std::string path = std::getenv("PATH") ? std::getenv("PATH") : "";
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find(':', begin), path.size());
    if (::access((path.substr(begin, end - begin) + "/" + program).c_str(), X_OK) == 0) return true;
    begin = end + 1;
  }
  return false;
}

/// The system's libtorch takes whatever the system calls libblas.so.3.
bool lacks_openblas(const ScriptKind& kind) {
  return std::any_of(kind.libraries.begin(), kind.libraries.end(), [](const std::string& library) {
    const fs::path path = library;
    return library.starts_with("/usr/lib/") && path.filename() == "libtorch_cpu.so" &&
           !fs::exists(path.parent_path() / "openblas-pthread/libblas.so.3");
  });
}

Machine this_machine() {
  Machine machine;
  machine.cores = usable_cores();
  machine.core_limit = core_limit();
  if (double load = 0; ::getloadavg(&load, 1) == 1) machine.load = load;
  machine.memory = store::available_bytes();
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0) machine.descriptors = files.rlim_cur;
  struct statvfs here {};
  if (::statvfs(".", &here) == 0) machine.disk = static_cast<std::uint64_t>(here.f_bavail) * here.f_frsize;
  machine.shared_huge_pages = chosen_in("/sys/kernel/mm/transparent_hugepage/shmem_enabled");
  machine.gpu = fs::exists("/proc/driver/nvidia/version");
  machine.libtorch = torch_version();
  if (const auto settings = load_compile_settings()) {
    machine.compiler = settings->train ? settings->train_compiler : settings->compiler;
    machine.compiler_found = is_executable(machine.compiler);
    machine.system_libtorch_without_openblas = settings->train && lacks_openblas(*settings->train);
  } else {
    machine.compiler = settings.error().text;
  }
  const auto root = RuntimeRoot::open();
  if (!root) machine.runtime_folder = tl::unexpected(root.error());
  const auto cache = ScriptCache::open();
  if (!cache) machine.cache = tl::unexpected(cache.error());
  return machine;
}

}  // namespace

Action add_check(Flags app) {
  auto as_json = std::make_shared<bool>(false);
  app.command("check", "Say whether this machine is fit to train").add("--json", as_json.get(), "a JSON object a line");
  return [as_json] {
    observe::Table table({"", "found", "", "what to do"});
    bool fit = true;
    for (const Finding& finding : findings_of(this_machine())) {
      const char* verdict = to_string(finding.verdict);
      fit = fit && finding.verdict != Finding::Verdict::bad;
      if (*as_json)
        std::printf(
            "%s\n",
            json_text({{"what", finding.what}, {"value", finding.value}, {"verdict", verdict}, {"mend", finding.mend}})
                .c_str());
      table.add({finding.what, finding.value, verdict, finding.mend});
    }
    if (!*as_json) std::fputs(table.text().c_str(), stdout);
    return fit ? kDone : kFailed;
  };
}

}  // namespace paceline::cli
