#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <vector>

#include "cli/cluster_paths.h"
#include "cli/commands.h"
#include "cli/recorded/run_history.h"
#include "cli/run_options.h"
#include "cli/script_cache.h"
#include "runtime/base/json.h"
#include "runtime/observe/format.h"

namespace paceline::cli {
namespace {

namespace fs = std::filesystem;

struct CleanFlags {
  std::string runs;
  std::string folder = "runs";
  bool dry_run = false;
  bool json = false;
};

/// A file of several names (a checkpoint that is kept) counts once.
double bytes_in(const fs::path& folder) {
  double bytes = 0;
  std::error_code ignored;
  for (fs::recursive_directory_iterator it(folder, ignored), end; !ignored && it != end; it.increment(ignored)) {
    std::error_code gone;
    if (!it->is_regular_file(gone)) continue;
    const auto names = it->hard_link_count(gone);
    const auto size = it->file_size(gone);
    if (!gone && names > 0) bytes += static_cast<double>(size) / static_cast<double>(names);
  }
  return bytes;
}

/// Whether it is the folder of a run of actors and tasks only, which has nothing but logs, and nothing was written
/// there for so long.
bool is_old_run_of_actors(const fs::path& folder, double age_s) {
  const auto now = fs::file_time_type::clock::now();
  bool has_logs = false;
  std::error_code failed;
  for (fs::recursive_directory_iterator it(folder, failed), end; !failed && it != end; it.increment(failed)) {
    const auto name = it->path().lexically_relative(folder);
    if (name == "logs" && it->is_directory(failed) && !it->is_symlink(failed)) continue;
    const bool is_log = name.parent_path() == "logs" && name.extension() == ".log";
    if ((name != "overrides.json" && !is_log) || !it->is_regular_file(failed) || it->is_symlink(failed)) return false;
    if (std::chrono::duration<double>(now - it->last_write_time(failed)).count() < age_s) return false;
    has_logs = has_logs || is_log;
  }
  return has_logs && !failed;
}

/// Whether it is the folder of a run, or of a comparison, in which nothing was written down for so long.
bool is_old_run(const fs::path& folder, double age_s) {
  const auto now = fs::file_time_type::clock::now();
  if (is_old_run_of_actors(folder, age_s)) return true;
  for (const auto& run : recorded::runs_in(folder)) {
    if (!recorded::is_run(run)) return false;
    for (const char* name : {"configuration.json", "metrics.jsonl", "result.json"}) {
      std::error_code missing;
      const auto written = fs::last_write_time(run / name, missing);
      if (!missing && std::chrono::duration<double>(now - written).count() < age_s) return false;
    }
  }
  return true;
}

Result<double> seconds_in(const std::string& text) {
  if (!text.ends_with('d')) return parse_seconds(text);
  const auto hours = parse_seconds(text.substr(0, text.size() - 1) + "h");
  return hours ? Result<double>(*hours * 24) : hours;
}

Result<std::vector<fs::path>> to_be_removed(const CleanFlags& flags) {
  std::vector<fs::path> folders;
  const auto cache = ScriptCache::open();
  if (!cache) return tl::unexpected(cache.error());
  folders.push_back(cache->folder().parent_path());
  if (flags.runs.empty()) return folders;
  const auto age_s = seconds_in(flags.runs);
  if (!age_s) return fail(ErrorKind::invalid, "--runs " + flags.runs + ": give a time such as 7d, 12h or 90m");
  std::error_code failed;
  for (fs::directory_iterator it(flags.folder, failed), end; !failed && it != end; it.increment(failed))
    if (it->is_directory(failed) && !it->is_symlink(failed) && is_old_run(it->path(), *age_s))
      folders.push_back(it->path());
  if (failed) return fail(ErrorKind::not_found, "no folder " + flags.folder + " of runs: " + failed.message());
  return folders;
}

Result<void> clean(const CleanFlags& flags) {
  const auto root = RuntimeRoot::open();
  if (!root) return tl::unexpected(root.error());
  if (const auto running = running_clusters(*root); !running.empty() && !flags.dry_run)
    return fail(ErrorKind::invalid, "a cluster is up ('" + running.front() +
                                        "'), which may need what would be removed: end its runs, or `paceline down`");
  const auto folders = to_be_removed(flags);
  if (!folders) return tl::unexpected(folders.error());
  for (const fs::path& folder : *folders) {
    const double bytes = bytes_in(folder);
    std::error_code failed;
    if (!flags.dry_run) fs::remove_all(folder, failed);
    if (failed) return fail(ErrorKind::internal, "cannot remove " + folder.string() + ": " + failed.message());
    if (flags.json)
      std::printf("%s\n", json_text({{"path", folder.string()}, {"bytes", std::llround(bytes)}}).c_str());
    else
      std::printf("%s\n", observe::format("%8.1f MB  %s", bytes / 1e6, folder.c_str()).c_str());
  }
  if (!flags.dry_run)
    for (const auto& name : sweep_stale(*root))
      if (!flags.json) std::printf("             what was left of the cluster %s\n", name.c_str());
  if (flags.dry_run && !flags.json) std::puts("nothing was removed: this was a dry run");
  return {};
}

}  // namespace

Action add_clean(Flags app) {
  auto flags = std::make_shared<CleanFlags>();
  Flags command = app.command("clean", "Remove compiled scripts, what dead clusters left, and old runs if asked for");
  const Flag runs = command.add("--runs", &flags->runs, "also runs that ended so long ago: 7d, 12h");
  command.add("--folder", &flags->folder, "where they are").shows_default().needs(runs);
  command.add("--dry-run", &flags->dry_run, "only say what would be removed");
  command.add("--json", &flags->json, "a JSON object a line: path, bytes");
  return [flags] {
    const auto done = clean(*flags);
    return done ? kDone : report(done.error());
  };
}

}  // namespace paceline::cli
