#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/script_parts.h"
#include "runtime/base/result.h"

namespace paceline::cli {

/// What one kind of script (with or without torch) is compiled and linked with.
struct ScriptKind {
  std::vector<std::string> includes;         ///< Ours.
  std::vector<std::string> system_includes;  ///< Others'; no warnings from these.
  std::vector<std::string> defines;
  std::vector<std::string> options;
  std::vector<std::string> archives;   ///< Our static libraries, in any order.
  std::vector<std::string> libraries;  ///< Others': files or -l options.
  std::vector<std::string> rpaths;
  std::string pch;  ///< Folder of paceline_train.h and its precompiled form; empty: none was built.
};

/// The contents of paceline-compile.json, which the build writes (cmake/PacelineScripts.cmake).
struct CompileSettings {
  std::string version;  ///< Paceline's.
  std::string compiler;
  std::string train_compiler;  ///< clang++ where it can read this torch's headers.
  std::vector<std::string> flags;
  std::vector<std::string> link_flags;
  ScriptKind plain;
  std::optional<ScriptKind> train;  ///< Nothing: built without libtorch.
};

/// `prefix` replaces @PREFIX@. `invalid` names the missing field.
Result<CompileSettings> parse_compile_settings(std::string_view json, const std::string& prefix);

/// Finds the file of the running `paceline`: in the build tree above it, or installed beside it.
Result<CompileSettings> load_compile_settings();

/// The kind that `source` asks for: with torch if it includes <paceline/train.h> or <torch/...>. `infeasible` if this
/// build has none.
Result<const ScriptKind*> kind_of(const CompileSettings& settings, std::string_view source);

/// The command that makes the executable `output` from `script` and from `objects`, which other sources became. Like
/// the next one it writes the headers that were used, as a make rule, to `output`.d.
std::vector<std::string> compile_command(const CompileSettings& settings, const ScriptKind& kind,
                                         const std::filesystem::path& script, const ScriptParts& parts,
                                         const std::vector<std::string>& objects, const std::filesystem::path& output);
/// The command that makes the object file `output` from one of `parts`' sources.
std::vector<std::string> object_command(const CompileSettings& settings, const ScriptKind& kind,
                                        const std::filesystem::path& source, const ScriptParts& parts,
                                        const std::filesystem::path& output);
/// The command that precompiles `folder`/paceline_train.h.
std::vector<std::string> precompile_command(const CompileSettings& settings, const std::filesystem::path& folder);

}  // namespace paceline::cli
