#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <vector>

#include "cli/commands.h"
#include "cli/process.h"
#include "cli/recorded/run_history.h"

namespace paceline::cli {

namespace {

namespace fs = std::filesystem;

std::vector<fs::path> log_files(const fs::path& run, const std::string& wanted) {
  std::vector<fs::path> files;
  std::error_code ignored;
  for (const auto& entry : fs::recursive_directory_iterator(run, ignored)) {
    const fs::path& path = entry.path();
    if (path.extension() == ".log" && (wanted.empty() || path.stem().string().find(wanted) != std::string::npos))
      files.push_back(path);
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

Action add_logs(Flags app) {
  struct Given {
    std::string run;
    std::string which;
    int lines = 20;
  };
  auto flags = std::make_shared<Given>();
  Flags command = app.command("logs", "Print the last lines that the workers of a run have written");
  command.add("run", &flags->run, "run directory; default: the newest in runs/");
  command.add("--only", &flags->which, "logs whose name holds this, such as worker-3");
  command.add("--lines,-n", &flags->lines, "of each").shows_default().between(1, 1'000'000);
  return [flags] {
    const fs::path run =
        flags->run.empty() ? recorded::newest_run("runs", recorded::Replays::count) : fs::path(flags->run);
    if (run.empty() || !fs::is_directory(run)) {
      return report(
          {ErrorKind::not_found,
           "no run directory " + (run.empty() ? std::string("in runs/") : run.string()) + ": give one as argument"});
    }
    const auto files = log_files(run, flags->which);
    if (files.empty())
      return report({ErrorKind::not_found, "no log in " + run.string() +
                                               (flags->which.empty() ? "" : " has " + flags->which + " in its name")});
    for (const fs::path& file : files) std::printf("== %s\n%s", file.c_str(), tail_of(file, flags->lines).c_str());
    return kDone;
  };
}

}  // namespace paceline::cli
