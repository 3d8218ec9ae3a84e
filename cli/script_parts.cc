#include "cli/script_parts.h"

#include <array>
#include <set>
#include <sstream>
#include <utility>

namespace paceline::cli {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr std::string_view kMark = "paceline:";

struct Field {
  const char* name;
  std::vector<std::string> ScriptParts::*list;
};
constexpr std::array<Field, 4> kFields = {{{"sources", &ScriptParts::sources},
                                           {"includes", &ScriptParts::includes},
                                           {"library_folders", &ScriptParts::library_folders},
                                           {"libraries", &ScriptParts::libraries}}};

/// What follows "// paceline:" in a line; empty: it is another one.
std::string_view asked_in(std::string_view line) {
  const auto skip = [&line] { line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size())); };
  skip();
  if (!line.starts_with("//")) return {};
  line.remove_prefix(2);
  skip();
  if (!line.starts_with(kMark)) return {};
  line.remove_prefix(kMark.size());
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

Result<void> take(const std::string& word, const fs::path& folder, ScriptParts& parts) {
  const std::size_t equals = word.find('=');
  for (const auto& [name, list] : kFields) {
    if (equals == word.npos || word.substr(0, equals) != name) continue;
    std::istringstream values(word.substr(equals + 1));
    for (std::string value; std::getline(values, value, ',');) {
      if (value.empty()) continue;
      const bool as_it_is = list == &ScriptParts::libraries && is_name_of_library(value);
      (parts.*list).push_back(as_it_is ? value : (folder / value).lexically_normal().string());
    }
    return {};
  }
  return fail(ErrorKind::invalid, "\"// paceline: " + word +
                                      "\" is not understood: there are sources=, includes=, libraries= and "
                                      "library_folders=, each with names separated by commas");
}

}  // namespace

void ScriptParts::add(const ScriptParts& more) {
  for (const auto& field : kFields) {
    auto& mine = this->*field.list;
    const auto& theirs = more.*field.list;
    mine.insert(mine.end(), theirs.begin(), theirs.end());
  }
}

bool is_source(const fs::path& path) {
  static const std::set<std::string> endings = {".cpp", ".cc", ".cxx", ".c++", ".C"};
  return endings.contains(path.extension().string());
}

bool is_name_of_library(const std::string& word) {
  return word.find('/') == word.npos && !word.ends_with(".a") && word.find(".so") == word.npos;
}

Result<ScriptParts> parts_in(std::string_view source, const fs::path& folder) {
  ScriptParts parts;
  while (!source.empty()) {
    const std::size_t end = std::min(source.find('\n'), source.size());
    std::istringstream words(std::string(asked_in(source.substr(0, end))));
    source.remove_prefix(std::min(end + 1, source.size()));
    for (std::string word; words >> word;) PACELINE_TRY(take(word, folder, parts));
  }
  return parts;
}

json to_json(const ScriptParts& parts) {
  json object = json::object();
  for (const auto& [name, list] : kFields)
    if (!(parts.*list).empty()) object[name] = parts.*list;
  return object;
}

ScriptParts parts_from_json(const json& object) {
  ScriptParts parts;
  for (const auto& [name, list] : kFields) {
    const auto found = object.is_object() ? object.find(name) : object.end();
    if (!object.is_object() || found == object.end() || !found->is_array()) continue;
    for (const json& value : *found)
      if (value.is_string()) (parts.*list).push_back(value.get<std::string>());
  }
  return parts;
}

}  // namespace paceline::cli
