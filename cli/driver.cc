#include "cli/driver.h"

#include <signal.h>

#include <cstdio>
#include <fstream>

#include "cli/commands.h"
#include "cli/script_cache.h"
#include "runtime/base/json.h"
#include "runtime/observe/run_directory.h"

namespace paceline::cli {

namespace fs = std::filesystem;
using nlohmann::json;

Result<Ended> run_driver(const fs::path& program, const std::vector<std::string>& arguments, const Place& place,
                         json overrides, const fs::path& directory) {
  PACELINE_TRY(observe::RunDirectory::check_unused(directory.string()));
  overrides["run_directory"] = directory.string();
  std::error_code failed;
  fs::create_directories(directory, failed);
  fs::remove(directory / "result.json", failed);
  const fs::path options = directory / "overrides.json";
  {
    std::ofstream out(options);
    out << json_text(overrides, 2) << '\n';
    out.close();
    if (!out) return fail(ErrorKind::internal, "cannot write " + options.string() + ": is the disk full?");
  }
  Spawn what;
  what.command = {program.string()};
  what.command.insert(what.command.end(), arguments.begin(), arguments.end());
  what.variables = {{"PACELINE_CLUSTER", place.directory.string()}, {"PACELINE_RUN", options.string()}};
  return run_child(what);
}

int exit_code(const Ended& ended, const fs::path& program) {
  if (ended.signal == 0) return ended.code;
  if (ended.signal == SIGINT || ended.signal == SIGTERM) return kInterrupted;
  std::fprintf(stderr, "paceline: the driver %s was %s\n", program.filename().c_str(), to_string(ended).c_str());
  return kFailed;
}

json read_result(const fs::path& directory) {
  const auto text = read_file(directory / "result.json");
  if (!text) return nullptr;
  json result = parse_json(*text);
  return result.is_object() ? result : json(nullptr);
}

}  // namespace paceline::cli
