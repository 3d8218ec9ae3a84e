#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/base/result.h"

namespace paceline::cli {

/// What a script's executable is made of beside the script: what `paceline run` was told, and what the script says
/// itself, in lines such as
///   // paceline: sources=model.cpp,data.cpp includes=include libraries=fftw3f,lib/libx.a
struct ScriptParts {
  std::vector<std::string> sources;          ///< Absolute paths.
  std::vector<std::string> includes;         ///< Folders, absolute.
  std::vector<std::string> library_folders;  ///< The same.
  std::vector<std::string> libraries;        ///< "fftw3f", or the absolute path of a file.

  bool empty() const { return sources.empty() && includes.empty() && library_folders.empty() && libraries.empty(); }
  /// Behind those that are there.
  void add(const ScriptParts& more);
  bool operator==(const ScriptParts&) const = default;
};

/// Whether this is the name of a C++ source.
bool is_source(const std::filesystem::path& path);

/// "fftw3f" is one; "lib/libx.a" and "x.so" are files.
bool is_name_of_library(const std::string& word);

/// What the lines `// paceline: ...` of a script ask for; relative paths are as seen from `folder`. `invalid` names
/// the word that is not understood.
Result<ScriptParts> parts_in(std::string_view source, const std::filesystem::path& folder);

/// For a run's configuration, from which a replay makes the executable again.
nlohmann::json to_json(const ScriptParts& parts);
/// Fields that are missing, or of another type, are empty.
ScriptParts parts_from_json(const nlohmann::json& object);

}  // namespace paceline::cli
