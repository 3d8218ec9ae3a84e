#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <memory>
#include <vector>

#include "cli/commands.h"
#include "cli/compare.h"
#include "cli/report/page.h"
#include "cli/report/report_data.h"
#include "runtime/base/json.h"
#include "runtime/observe/atomic_file.h"

namespace paceline::cli {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

struct ReportFlags {
  std::vector<std::string> runs;
  std::string output;
  bool json = false;
};

constexpr std::size_t kInWordsMax = 6;  // More runs make no sentence that anybody reads.

/// What happened, in one line, as after `paceline run --compare`.
std::string line_of(const json& runs) {
  std::vector<Compared> compared;
  for (const json& run : runs)
    compared.push_back({run["name"].get<std::string>(), run["failed"] == true ? json(nullptr) : run["result"]});
  return compared.size() > 1 && compared.size() <= kInWordsMax ? comparison_in_words(compared) : "";
}

Result<json> data_of(const ReportFlags& flags) {
  std::vector<report::LoadedRun> runs;
  for (const std::string& directory : flags.runs) {
    auto loaded = report::load_runs(directory);
    if (!loaded) return tl::unexpected(loaded.error());
    std::move(loaded->begin(), loaded->end(), std::back_inserter(runs));
  }
  if (runs.size() > report::kRunsMax) {
    return fail(ErrorKind::invalid, std::to_string(runs.size()) + " runs are too many for a page: name at most " +
                                        std::to_string(report::kRunsMax));
  }
  json data = report::report_data(runs);
  data["summary"] = line_of(data["runs"]);
  return data;
}

Result<void> write_report(const ReportFlags& flags) {
  const auto data = data_of(flags);
  if (!data) return tl::unexpected(data.error());
  if (flags.json) {
    std::printf("%s\n", json_text(*data).c_str());
    return {};
  }
  const std::string path = flags.output.empty() ? fs::path(flags.runs.front()) / "report.html" : fs::path(flags.output);
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return fail(ErrorKind::invalid, path + " is a directory: name a file after -o");
  auto file = observe::AtomicFile::create(path);
  if (!file) return tl::unexpected(file.error());
  PACELINE_TRY(file->write(report::page(*data)));
  PACELINE_TRY(file->commit());
  std::printf("%s\n", path.c_str());
  return {};
}

}  // namespace

Action add_report(Flags app) {
  auto flags = std::make_shared<ReportFlags>();
  Flags command = app.command("report", "Make a page of one or more runs: curves, timelines, what they came to");
  command.add("runs", &flags->runs, "run directories, also those of comparisons").required();
  const Flag output = command.add("--output,-o", &flags->output, "default: report.html in the first run directory");
  command.add("--json", &flags->json, "the data of the page on stdout instead").excludes(output);
  return [flags] {
    const auto written = write_report(*flags);
    return written ? kDone : report(written.error());
  };
}

}  // namespace paceline::cli
