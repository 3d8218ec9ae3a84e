#include "cli/compile_settings.h"

#include <fstream>
#include <initializer_list>
#include <iterator>

#include "runtime/base/json.h"

namespace paceline::cli {

namespace fs = std::filesystem;

namespace {

using nlohmann::json;

std::string with_prefix(std::string text, const std::string& prefix) {
  constexpr std::string_view kMark = "@PREFIX@";
  if (text.starts_with(kMark)) text.replace(0, kMark.size(), prefix);
  return text;
}

/// The build writes an empty list as [""].
std::vector<std::string> words(const json& object, const char* field, const std::string& prefix) {
  std::vector<std::string> found;
  for (const json& word : object.at(field)) {
    if (!word.get_ref<const std::string&>().empty()) found.push_back(with_prefix(word, prefix));
  }
  return found;
}

ScriptKind parse_kind(const json& object, const std::string& prefix) {
  ScriptKind kind;
  kind.includes = words(object, "includes", prefix);
  kind.system_includes = words(object, "system_includes", prefix);
  kind.defines = words(object, "defines", prefix);
  kind.options = words(object, "options", prefix);
  kind.archives = words(object, "archives", prefix);
  kind.libraries = words(object, "libraries", prefix);
  kind.rpaths = words(object, "rpaths", prefix);
  kind.pch = with_prefix(object.at("pch"), prefix);
  return kind;
}

void append(std::vector<std::string>& command, std::initializer_list<std::string_view> marks,
            const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    for (std::size_t i = 0; i + 1 < marks.size(); ++i) command.emplace_back(marks.begin()[i]);
    command.push_back(std::string(marks.begin()[marks.size() - 1]) + word);
  }
}

/// What a script and the precompiled header must have in common.
std::vector<std::string> front(const std::string& compiler, const CompileSettings& settings, const ScriptKind& kind) {
  std::vector<std::string> command = {compiler};
  append(command, {""}, settings.flags);
  append(command, {""}, kind.options);
  append(command, {"-D"}, kind.defines);
  append(command, {"-I"}, kind.includes);
  append(command, {"-isystem", ""}, kind.system_includes);
  return command;
}

bool is_clang(const std::string& compiler) {
  return fs::path(compiler).filename().string().find("clang") != std::string::npos;
}

}  // namespace

Result<CompileSettings> parse_compile_settings(std::string_view text, const std::string& prefix) {
  try {
    const json object = parse_json(text);
    CompileSettings settings;
    settings.version = object.at("paceline");
    settings.compiler = object.at("compiler");
    settings.train_compiler = object.at("train_compiler");
    settings.flags = words(object, "flags", prefix);
    settings.link_flags = words(object, "link_flags", prefix);
    settings.plain = parse_kind(object.at("plain"), prefix);
    if (!object.at("train").is_null()) settings.train = parse_kind(object.at("train"), prefix);
    return settings;
  } catch (const json::exception& e) {
    return fail(ErrorKind::invalid,
                std::string("paceline-compile.json: ") + e.what() + ": build or install Paceline again");
  }
}

Result<CompileSettings> load_compile_settings() {
  std::error_code failed;
  const fs::path self = fs::read_symlink("/proc/self/exe", failed);
  if (failed) return fail(ErrorKind::internal, "cannot read /proc/self/exe: " + failed.message());
  const fs::path prefix = self.parent_path().parent_path();
  // Build tree: BUILD/cli/paceline. Installed: PREFIX/bin/paceline, with the distribution's library folders.
  for (const char* place :
       {".", "lib/paceline", "lib64/paceline", "lib/x86_64-linux-gnu/paceline", "lib/aarch64-linux-gnu/paceline"}) {
    std::ifstream in(prefix / place / "paceline-compile.json");
    if (!in) continue;
    return parse_compile_settings(std::string(std::istreambuf_iterator<char>(in), {}), prefix.string());
  }
  return fail(ErrorKind::not_found, "no paceline-compile.json under " + prefix.string() +
                                        ", so scripts cannot be compiled: install Paceline with `cmake --install`");
}

namespace {

/// Takes `word` and the blanks around it from the front of `line`.
bool take(std::string_view& line, std::string_view word) {
  const auto skip = [&line] { line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size())); };
  skip();
  if (!line.starts_with(word)) return false;
  line.remove_prefix(word.size());
  skip();
  return true;
}

/// Whether a line includes <paceline/train.h> or something of torch.
bool includes_torch(std::string_view source) {
  while (!source.empty()) {
    const std::size_t end = std::min(source.find('\n'), source.size());
    std::string_view line = source.substr(0, end);
    source.remove_prefix(std::min(end + 1, source.size()));
    if (!take(line, "#") || !take(line, "include") || line.empty() || (line[0] != '<' && line[0] != '"')) continue;
    line.remove_prefix(1);
    if (line.starts_with("paceline/train.h") || line.starts_with("torch/")) return true;
  }
  return false;
}

}  // namespace

Result<const ScriptKind*> kind_of(const CompileSettings& settings, std::string_view source) {
  if (!includes_torch(source)) return &settings.plain;
  if (settings.train) return &*settings.train;
  return fail(ErrorKind::infeasible,
              "the script includes paceline/train.h, but this Paceline was built without libtorch: configure with "
              "-DPACELINE_TRAIN=ON");
}

namespace {

/// Everything up to the source.
std::vector<std::string> with_header(const CompileSettings& settings, const ScriptKind& kind,
                                     const ScriptParts& parts) {
  const bool train = settings.train && &kind == &*settings.train;
  const std::string& compiler = train ? settings.train_compiler : settings.compiler;
  std::vector<std::string> command = front(compiler, settings, kind);
  if (!kind.pch.empty()) {
    const fs::path header = fs::path(kind.pch) / "paceline_train.h";
    if (is_clang(compiler) && fs::exists(header.string() + ".pch")) {
      append(command, {""}, {"-include-pch", header.string() + ".pch"});
    } else {
      append(command, {""}, {"-include", header.string()});
    }
  }
  append(command, {"-I"}, parts.includes);
  return command;
}

void append_output(std::vector<std::string>& command, const fs::path& source, const fs::path& output) {
  append(command, {""}, {"-MMD", "-MF", output.string() + ".d", source.string(), "-o", output.string()});
}

}  // namespace

std::vector<std::string> compile_command(const CompileSettings& settings, const ScriptKind& kind,
                                         const fs::path& script, const ScriptParts& parts,
                                         const std::vector<std::string>& objects, const fs::path& output) {
  std::vector<std::string> command = with_header(settings, kind, parts);
  append_output(command, script, output);
  append(command, {""}, objects);
  append(command, {"-L"}, parts.library_folders);
  for (const std::string& library : parts.libraries)
    command.push_back(library.starts_with('/') ? library : "-l" + library);
  append(command, {""}, settings.link_flags);
  append(command, {""}, {"-Wl,--start-group"});
  append(command, {""}, kind.archives);
  append(command, {""}, {"-Wl,--end-group"});
  append(command, {""}, kind.libraries);
  append(command, {"-Wl,-rpath,"}, kind.rpaths);
  append(command, {"-Wl,-rpath,"}, parts.library_folders);
  for (const std::string& library : parts.libraries)
    if (library.starts_with('/') && library.find(".so") != library.npos)
      command.push_back("-Wl,-rpath," + fs::path(library).parent_path().string());
  return command;
}

std::vector<std::string> object_command(const CompileSettings& settings, const ScriptKind& kind, const fs::path& source,
                                        const ScriptParts& parts, const fs::path& output) {
  std::vector<std::string> command = with_header(settings, kind, parts);
  command.emplace_back("-c");
  append_output(command, source, output);
  return command;
}

std::vector<std::string> precompile_command(const CompileSettings& settings, const fs::path& folder) {
  const std::string header = (folder / "paceline_train.h").string();
  std::vector<std::string> command = front(settings.train_compiler, settings, *settings.train);
  append(command, {""},
         {"-x", "c++-header", header, "-o", header + (is_clang(settings.train_compiler) ? ".pch" : ".gch")});
  return command;
}

}  // namespace paceline::cli
