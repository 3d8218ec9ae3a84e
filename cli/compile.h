#pragma once

#include <filesystem>
#include <string>

#include "cli/compile_settings.h"
#include "cli/script_cache.h"
#include "runtime/base/result.h"

namespace paceline::cli {

/// What identifies a script's executable: its path and content, the command that makes it, and every library and
/// compiler in that command (by size and time of change). Headers are looked at by the cache.
std::string script_key(const CompileSettings& settings, const ScriptKind& kind, const std::filesystem::path& script,
                       const std::string& source);

/// The executable of an actor script: the script itself if it is one already, from the cache if nothing changed, else
/// compiled. What the compiler says is printed as it is; after two seconds a progress line on stderr. `invalid`: it
/// does not compile.
Result<std::filesystem::path> executable_of(const std::filesystem::path& script);

}  // namespace paceline::cli
