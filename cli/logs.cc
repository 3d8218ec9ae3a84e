#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/process.h"
#include "cli/recorded/run_history.h"
#include "runtime/base/json.h"

namespace paceline::cli {

namespace {

namespace fs = std::filesystem;

std::vector<fs::path> log_files(const fs::path& run, const std::string& wanted) {
  std::vector<fs::path> files;
  std::error_code ignored;
  for (const auto& entry : fs::recursive_directory_iterator(run, ignored)) {
    const fs::path& path = entry.path();
    std::error_code gone;
    if (path.extension() == ".log" && entry.is_regular_file(gone) &&
        (wanted.empty() || path.stem().string().find(wanted) != std::string::npos))
      files.push_back(path);
  }
  std::sort(files.begin(), files.end());
  return files;
}

/// The run that was begun last; also one of actors and tasks only, which has nothing but logs.
fs::path newest_with_logs(const fs::path& base) {
  fs::path newest = recorded::newest_run(base, recorded::Replays::count);
  std::error_code failed;
  auto last = fs::last_write_time(newest / "configuration.json", failed);
  if (newest.empty() || failed) last = fs::file_time_type::min();
  for (fs::directory_iterator it(base, failed), end; !failed && it != end; it.increment(failed)) {
    std::error_code none;
    const auto written = fs::last_write_time(it->path() / "logs", none);
    if (none || recorded::is_run(it->path()) || written <= last) continue;
    newest = it->path();
    last = written;
  }
  return newest;
}

std::string json_line(const fs::path& file, const std::string& line) {
  return json_text({{"log", file.stem().string()}, {"line", line}});
}

constexpr auto kLook = std::chrono::milliseconds(200);

/// Prints what is written from now on, line by line, with the name of its log, until the run has its result.
void follow(const fs::path& run, const std::string& wanted, bool as_json, std::map<fs::path, std::uintmax_t> seen) {
  const auto ended = [&run] { return fs::exists(run / "result.json"); };
  for (bool last = ended();; std::this_thread::sleep_for(kLook)) {
    for (const fs::path& file : log_files(run, wanted)) {
      std::ifstream log(file, std::ios::binary);
      std::uintmax_t& position = seen[file];
      log.seekg(static_cast<std::streamoff>(position));
      for (std::string line; std::getline(log, line) && !log.eof(); position += line.size() + 1)
        std::puts(as_json ? json_line(file, line).c_str() : ("[" + file.stem().string() + "] " + line).c_str());
    }
    std::fflush(stdout);
    if (std::exchange(last, ended())) return;
  }
}

}  // namespace

Action add_logs(Flags app) {
  struct Given {
    std::string run;
    std::string which;
    int lines = 20;
    bool follow = false;
    bool json = false;
  };
  auto flags = std::make_shared<Given>();
  Flags command = app.command("logs", "Print the last lines that the workers of a run have written");
  command.add("run", &flags->run, "run directory; default: the newest in runs/");
  command.add("--only", &flags->which, "logs whose name holds this, such as worker-3");
  command.add("--lines,-n", &flags->lines, "of each").shows_default().between(1, 1'000'000);
  command.add("--follow,-f", &flags->follow, "go on with what is written from now on, until the run has ended");
  command.add("--json", &flags->json, "a JSON object a line: log, line");
  return [flags] {
    const fs::path run = flags->run.empty() ? newest_with_logs("runs") : fs::path(flags->run);
    if (run.empty() || !fs::is_directory(run)) {
      return report(
          {ErrorKind::not_found,
           "no run directory " + (run.empty() ? std::string("in runs/") : run.string()) + ": give one as argument"});
    }
    const auto files = log_files(run, flags->which);
    if (files.empty() && !flags->follow)
      return report({ErrorKind::not_found, "no log in " + run.string() +
                                               (flags->which.empty() ? "" : " has " + flags->which + " in its name")});
    std::map<fs::path, std::uintmax_t> seen;
    for (const fs::path& file : files) {
      std::error_code ignored;
      seen[file] = fs::file_size(file, ignored);
      if (!flags->json) std::printf("== %s\n", file.c_str());
      for (const std::string& line : last_lines(file, flags->lines))
        std::puts(flags->json ? json_line(file, line).c_str() : ("  " + line).c_str());
    }
    if (flags->follow) follow(run, flags->which, flags->json, std::move(seen));
    return kDone;
  };
}

}  // namespace paceline::cli
