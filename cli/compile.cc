#include "cli/compile.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <set>

#include "cli/cluster_paths.h"
#include "cli/process.h"

namespace paceline::cli {

namespace fs = std::filesystem;

namespace {

const std::set<std::string> kSourceEndings = {".cpp", ".cc", ".cxx", ".c++", ".C"};

/// "size:time" of what a word of a command names, "" if it is no file.
std::string stamp(const std::string& word) {
  std::error_code failed;
  if (!fs::is_regular_file(word, failed)) return "";
  return std::to_string(fs::file_size(word, failed)) + ":" +
         std::to_string(fs::last_write_time(word, failed).time_since_epoch().count());
}

/// A line on stderr that says how long something takes: rewritten in place on a terminal, else one line after `kQuiet`.
class Waiting {
 public:
  explicit Waiting(std::string what) : what_(std::move(what)), terminal_(::isatty(STDERR_FILENO) == 1) {}
  ~Waiting() {
    if (shown_ && terminal_) std::fputs("\r\033[K", stderr);
  }
  void at(std::chrono::duration<double> passed) {
    if (passed < kQuiet || (shown_ && !terminal_)) return;
    shown_ = true;
    if (terminal_) {
      std::fprintf(stderr, "\r\033[K%s ... %.0f s", what_.c_str(), passed.count());
    } else {
      std::fprintf(stderr, "%s ...\n", what_.c_str());
    }
    std::fflush(stderr);
  }

 private:
  static constexpr std::chrono::seconds kQuiet{2};
  std::string what_;
  bool terminal_;
  bool shown_ = false;
};

/// Runs a compiler; its messages come out after the progress line is gone.
Result<Ended> run_compiler(std::vector<std::string> command, const std::string& what, const fs::path& messages) {
  if (::isatty(STDERR_FILENO) == 1 && !std::getenv("NO_COLOR"))
    command.insert(command.begin() + 1, "-fdiagnostics-color=always");
  auto child = spawn({.command = command, .output = messages.string(), .errors_only = true});
  if (!child) return fail(child.error().kind, child.error().text + ": install a compiler with apt-get install g++");
  Result<Ended> ended = [&] {
    Waiting waiting(what);
    return wait_for(*child, [&](std::chrono::duration<double> passed) { waiting.at(passed); });
  }();
  if (const auto said = read_file(messages)) std::fputs(said->c_str(), stderr);
  return ended;
}

/// An installed Paceline has no precompiled header yet: made once a user, in the cache. Only one process at a time
/// makes it.
Result<void> provide_precompiled_header(CompileSettings& settings, const fs::path& cache) {
  if (!settings.train || !settings.train->pch.empty()) return {};
  ContentHash hash;
  for (const std::string& word : precompile_command(settings, "")) {
    hash.add(word);
    hash.add(stamp(word));
  }
  for (const std::string& folder : settings.train->includes) hash.add(stamp(folder + "/paceline/train.h"));
  const fs::path folder = cache.parent_path() / ("pch-" + hash.hex());
  std::error_code failed;
  fs::create_directories(folder, failed);
  const OwnedFd lock(::open((folder / "lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (lock.get() < 0 || ::flock(lock.get(), LOCK_EX) != 0) return fail_errno("cannot lock " + folder.string());

  if (!fs::exists(folder / "done")) {
    if (std::FILE* header = std::fopen((folder / "paceline_train.h").c_str(), "w")) {
      std::fputs("#include <paceline/train.h>\n", header);
      std::fclose(header);
    }
    const auto ended = run_compiler(precompile_command(settings, folder),
                                    "precompiling paceline/train.h (once, about 30 s)", folder / "messages");
    if (!ended) return tl::unexpected(ended.error());
    if (ended->code != 0)
      return fail(ErrorKind::invalid,
                  "paceline/train.h does not compile (above): is libtorch still the one Paceline was built with?");
    std::FILE* done = std::fopen((folder / "done").c_str(), "w");
    if (!done) return fail_errno("cannot write to " + folder.string());
    std::fclose(done);
  }
  settings.train->pch = folder.string();
  return {};
}

}  // namespace

std::string script_key(const CompileSettings& settings, const ScriptKind& kind, const fs::path& script,
                       const std::string& source) {
  ContentHash hash;
  hash.add(settings.version);
  hash.add(source);
  for (const std::string& word : compile_command(settings, kind, script, "program")) {
    hash.add(word);
    if (word != script) hash.add(stamp(word));
  }
  for (const char* ending : {".gch", ".pch"}) hash.add(stamp(kind.pch + "/paceline_train.h" + ending));
  return script.stem().string() + "-" + hash.hex();
}

Result<fs::path> executable_of(const fs::path& given) {
  std::error_code failed;
  const fs::path script = fs::absolute(given);
  if (!fs::is_regular_file(script, failed)) {
    return fail(ErrorKind::not_found, "no file " + given.string() + ": give an actor script (x.cpp) or an executable");
  }
  if (script.extension() == ".py")
    return fail(ErrorKind::invalid, given.string() +
                                        " is Python, and Paceline has no Python API: an actor script is a "
                                        "C++ file, such as examples/fashion_mnist.cpp");
  if (!kSourceEndings.contains(script.extension())) {
    if (::access(script.c_str(), X_OK) == 0) return script;
    return fail(ErrorKind::invalid, given.string() + " is neither a C++ source (.cpp, .cc, .cxx) nor an executable");
  }
  auto source = read_file(script);
  if (!source) return tl::unexpected(source.error());
  auto settings = load_compile_settings();
  if (!settings) return tl::unexpected(settings.error());
  auto cache = ScriptCache::open();
  if (!cache) return tl::unexpected(cache.error());
  auto kind = kind_of(*settings, *source);
  if (!kind) return tl::unexpected(kind.error());
  if (*kind != &settings->plain) PACELINE_TRY(provide_precompiled_header(*settings, cache->folder()));

  const std::string key = script_key(*settings, **kind, script, *source);
  if (auto program = cache->find(key, script.stem())) return *program;
  auto made = cache->place_for_new(script.stem());
  if (!made) return tl::unexpected(made.error());
  const auto ended = run_compiler(compile_command(*settings, **kind, script, *made),
                                  "compiling " + script.filename().string(), made->string() + ".messages");
  if (!ended || ended->code != 0) {
    fs::remove_all(made->parent_path(), failed);
    if (!ended) return tl::unexpected(ended.error());
    return fail(ErrorKind::invalid, given.string() + " does not compile: see the compiler's messages above");
  }
  return cache->store(key, *made);
}

}  // namespace paceline::cli
