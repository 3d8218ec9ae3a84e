#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cli/compile_settings.h"
#include "cli/script_parts.h"
#include "runtime/base/result.h"

namespace paceline::cli {

struct SourceFile {
  std::filesystem::path path;
  std::string text;
};

/// What identifies an executable: the paths and contents of its sources (the script is the first), the command that
/// makes it, and every library and compiler in that command (by size and time of change). Headers are looked at by the
/// cache.
std::string script_key(const CompileSettings& settings, const ScriptKind& kind, const std::vector<SourceFile>& sources,
                       const ScriptParts& parts);

/// What a user gave to be run.
struct Script {
  std::filesystem::path path;
  ScriptParts parts{};  ///< Besides what the script itself asks for.
};

/// The executable of an actor script: the script itself if it is one already, from the cache if nothing changed, else
/// compiled. What the compiler says is printed as it is; after two seconds a progress line on stderr. `invalid`: it
/// does not compile.
Result<std::filesystem::path> executable_of(const Script& script);

}  // namespace paceline::cli
