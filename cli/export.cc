#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/recorded/run_history.h"
#include "cli/recorded/scalars.h"
#include "cli/tensorboard.h"
#include "runtime/base/json.h"
#include "runtime/observe/atomic_file.h"
#include "runtime/observe/format.h"

namespace paceline::cli {

namespace {

namespace fs = std::filesystem;

struct ExportFlags {
  std::vector<std::string> runs;
  std::string output;
  std::string tensorboard;
  bool json = false;
};

/// A cell of a CSV file (RFC 4180).
std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == text.npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

std::string csv_rows(const std::string& run, const std::vector<recorded::Scalar>& scalars) {
  std::string rows;
  for (const auto& s : scalars)
    rows += csv_cell(run) + "," + std::to_string(s.update) + observe::format(",%.6f,", s.clock_s) + csv_cell(s.name) +
            "," + (s.worker < 0 ? "" : std::to_string(s.worker)) + observe::format(",%.9g\n", s.value);
  return rows;
}

std::string json_lines(const std::string& run, const std::vector<recorded::Scalar>& scalars) {
  std::string lines;
  for (const auto& s : scalars) {
    nlohmann::json line{
        {"run", run}, {"update", s.update}, {"clock_s", s.clock_s}, {"name", s.name}, {"value", s.value}};
    if (s.worker >= 0) line["worker"] = s.worker;
    lines += json_text(line) + "\n";
  }
  return lines;
}

Result<void> write_file(const std::string& path, const std::string& text) {
  auto file = observe::AtomicFile::create(path);
  if (!file) return tl::unexpected(file.error());
  PACELINE_TRY(file->write(text));
  return file->commit();
}

/// When the training clock was 0, from when the last line was written.
double beginning_of(const fs::path& run, const std::vector<recorded::Scalar>& scalars) {
  std::error_code ignored;
  const auto written = std::chrono::file_clock::to_sys(fs::last_write_time(run / "metrics.jsonl", ignored));
  const double end = std::chrono::duration<double>(written.time_since_epoch()).count();
  return end - (scalars.empty() ? 0 : scalars.back().clock_s);
}

Result<void> export_runs(const ExportFlags& flags) {
  std::string text = flags.json ? "" : "run,update,clock_s,name,worker,value\n";
  for (const std::string& given : flags.runs) {
    std::error_code failed;
    const fs::path directory = fs::canonical(given, failed);
    for (const fs::path& run : recorded::runs_in(failed ? fs::path(given) : directory)) {
      const auto scalars = recorded::scalars_of(run);
      if (!scalars) return tl::unexpected(scalars.error());
      const std::string name = run.filename().string();
      text += flags.json ? json_lines(name, *scalars) : csv_rows(name, *scalars);
      if (flags.tensorboard.empty()) continue;
      const fs::path folder = fs::path(flags.tensorboard) / name;
      fs::create_directories(folder, failed);
      if (failed) return fail(ErrorKind::invalid, "create " + folder.string() + ": " + failed.message());
      const double began = beginning_of(run, *scalars);
      const fs::path file = folder / observe::format("events.out.tfevents.%.0f.paceline", std::floor(began));
      PACELINE_TRY(write_file(file, tensorboard_events(*scalars, began)));
      std::printf("%s\n", file.c_str());
    }
  }
  if (!flags.tensorboard.empty() && flags.output.empty()) return {};
  if (flags.output.empty()) {
    std::fputs(text.c_str(), stdout);
    return {};
  }
  return write_file(flags.output, text);
}

}  // namespace

Action add_export(Flags app) {
  auto flags = std::make_shared<ExportFlags>();
  Flags command = app.command(
      "export", "Print the losses, evaluations and logged values of runs as CSV, or write them for TensorBoard");
  command.add("runs", &flags->runs, "run directories, also those of comparisons").required();
  command.add("--output,-o", &flags->output, "a file; else it goes to stdout");
  command.add("--json", &flags->json, "a JSON object a line instead: run, update, clock_s, name, worker, value");
  command.add("--tensorboard", &flags->tensorboard, "a folder for `tensorboard --logdir`: a folder a run in it");
  return [flags] {
    const auto exported = export_runs(*flags);
    return exported ? kDone : report(exported.error());
  };
}

}  // namespace paceline::cli
