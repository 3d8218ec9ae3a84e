#include "algorithms/job/given_options.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "actors/arguments.h"
#include "actors/process_client.h"
#include "actors/tool.h"

namespace paceline::job {
namespace {

using nlohmann::json;

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// What the flags among the program's own arguments say; `paceline` knows which there are.
Result<json> flags_among_arguments() {
  const auto arguments = paceline::arguments();
  if (std::none_of(arguments.begin(), arguments.end(), [](const auto& word) { return word.starts_with("--"); }))
    return json::object();
  const auto program = actors::this_executable();
  if (!program) return tl::unexpected(program.error());
  std::vector<std::string> words{"options", "--"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  auto tool = actors::Tool::start(program->path, std::move(words));
  if (!tool)
    return fail(tool.error().kind, "no `paceline` to read the flags of this program (" + tool.error().text +
                                       "): put it in PATH, or run this program with `paceline run`");
  json flags = parse_json(tool->read_line());
  if (!flags.is_object()) return fail(ErrorKind::internal, "`paceline options` said nothing of this program's flags");
  if (flags.contains("error")) return fail(ErrorKind::invalid, flags.value("error", ""));
  const auto misspelt = flags.value("misspelt", std::map<std::string, std::string>());
  flags.erase("misspelt");
  static bool is_told = false;  // By the process's first run.
  if (!std::exchange(is_told, true))
    for (const auto& [flag, meant] : misspelt)
      std::fprintf(stderr, "paceline: %s is no flag of ours and left to the program: did you mean %s?\n", flag.c_str(),
                   meant.c_str());
  return flags;
}

}  // namespace

Result<json> merged_options(json options) {
  const auto path = actors::environment("PACELINE_RUN");
  const auto flags = path.empty() ? flags_among_arguments() : Result<json>(parse_json(read_file(path)));
  if (!flags) return tl::unexpected(flags.error());
  if (!flags->is_object())
    return fail(ErrorKind::invalid, "PACELINE_RUN names " + path + ", which holds no JSON object");
  options.update(*flags);
  return options;
}

}  // namespace paceline::job
