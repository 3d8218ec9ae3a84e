#include "cli/compile.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <thread>

#include "cli/cluster_paths.h"
#include "cli/process.h"
#include "cli/script_cache.h"

namespace paceline::cli {

namespace fs = std::filesystem;

namespace {

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

/// A compiler's work, and the file that what it says goes to.
struct Compilation {
  std::vector<std::string> command;
  fs::path messages;
};

Result<pid_t> start(Compilation compilation) {
  auto& command = compilation.command;
  if (::isatty(STDERR_FILENO) == 1 && !std::getenv("NO_COLOR"))
    command.insert(command.begin() + 1, "-fdiagnostics-color=always");
  auto child = spawn({.command = command, .output = compilation.messages.string(), .errors_only = true});
  if (!child) return fail(child.error().kind, child.error().text + ": install a compiler with apt-get install g++");
  return *child;
}

void end_all(const std::deque<pid_t>& running) {
  for (const pid_t child : running) end_child(child, std::chrono::seconds(1));
}

/// As many at a time as there are cores, none after one that failed: how that one ended. Their messages come out after
/// the progress line is gone.
Result<Ended> run_compilers(const std::vector<Compilation>& all, const std::string& what) {
  const auto began = std::chrono::steady_clock::now();
  const std::size_t at_once = std::max(1U, std::thread::hardware_concurrency());
  Result<Ended> ended = [&]() -> Result<Ended> {
    Waiting waiting(what);
    std::deque<pid_t> running;
    std::size_t begun = 0;
    Ended worst;
    while (begun < all.size() || !running.empty()) {
      for (; begun < all.size() && running.size() < at_once; ++begun) {
        const auto child = start(all[begun]);
        if (!child) {
          end_all(running);
          return tl::unexpected(child.error());
        }
        running.push_back(*child);
      }
      auto one = wait_for(running.front(), [&](auto) { waiting.at(std::chrono::steady_clock::now() - began); });
      running.pop_front();
      if (!one) {
        end_all(running);
        return one;
      }
      if (one->code == 0) continue;
      worst = *one;
      begun = all.size();
    }
    return worst;
  }();
  for (const auto& compilation : all)
    if (const auto said = read_file(compilation.messages)) std::fputs(said->c_str(), stderr);
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
    const auto ended = run_compilers({{precompile_command(settings, folder), folder / "messages"}},
                                     "precompiling paceline/train.h (once, about 30 s)");
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

/// The script, then the others.
Result<std::vector<SourceFile>> read_sources(const fs::path& script, ScriptParts& parts) {
  std::vector<SourceFile> sources;
  auto text = read_file(script);
  if (!text) return tl::unexpected(text.error());
  const auto asked = parts_in(*text, script.parent_path());
  if (!asked) return fail(asked.error().kind, script.string() + ": " + asked.error().text);
  parts.add(*asked);
  sources.push_back({script, std::move(*text)});
  for (const std::string& path : parts.sources) {
    if (!is_source(path))
      return fail(ErrorKind::invalid,
                  path + " is no C++ source (.cpp, .cc, .cxx), and " + script.string() + " needs it as one");
    auto more = read_file(path);
    if (!more) return fail(more.error().kind, more.error().text + " (" + script.string() + " needs it)");
    sources.push_back({path, std::move(*more)});
  }
  return sources;
}

/// With torch if one of them includes it.
Result<const ScriptKind*> kind_of_all(const CompileSettings& settings, const std::vector<SourceFile>& sources) {
  for (const auto& source : sources) {
    auto kind = kind_of(settings, source.text);
    if (!kind || *kind != &settings.plain) return kind;
  }
  return &settings.plain;
}

/// Objects of all sources but the first, then the executable `program` from these and the first.
Result<Ended> compile(const CompileSettings& settings, const ScriptKind& kind, const std::vector<SourceFile>& sources,
                      const ScriptParts& parts, const fs::path& program) {
  std::vector<Compilation> others;
  std::vector<std::string> objects;
  for (std::size_t k = 1; k < sources.size(); ++k) {
    const std::string object = (program.parent_path() / (std::to_string(k) + ".o")).string();
    others.push_back({object_command(settings, kind, sources[k].path, parts, object), object + ".messages"});
    objects.push_back(object);
  }
  if (!others.empty()) {
    auto ended = run_compilers(others, "compiling " + std::to_string(others.size()) + " further sources");
    if (!ended || ended->code != 0) return ended;
  }
  auto ended = run_compilers({{compile_command(settings, kind, sources.front().path, parts, objects, program),
                               program.string() + ".messages"}},
                             "compiling " + sources.front().path.filename().string());
  std::error_code ignored;
  for (const std::string& object : objects) fs::remove(object, ignored);
  return ended;
}

}  // namespace

std::string script_key(const CompileSettings& settings, const ScriptKind& kind, const std::vector<SourceFile>& sources,
                       const ScriptParts& parts) {
  const fs::path& script = sources.front().path;
  ContentHash hash;
  hash.add(settings.version);
  for (const auto& source : sources) {
    hash.add(source.path.string());
    hash.add(source.text);
  }
  for (const std::string& word : compile_command(settings, kind, script, parts, {}, "program")) {
    hash.add(word);
    if (word != script) hash.add(stamp(word));
  }
  for (const char* ending : {".gch", ".pch"}) hash.add(stamp(kind.pch + "/paceline_train.h" + ending));
  return script.stem().string() + "-" + hash.hex();
}

Result<fs::path> executable_of(const Script& given) {
  std::error_code failed;
  const fs::path script = fs::absolute(given.path);
  if (!fs::is_regular_file(script, failed)) {
    return fail(ErrorKind::not_found,
                "no file " + given.path.string() + ": give an actor script (x.cpp) or an executable");
  }
  if (script.extension() == ".py")
    return fail(ErrorKind::invalid, given.path.string() +
                                        " is Python, and Paceline has no Python API: an actor script is a "
                                        "C++ file, such as examples/fashion_mnist.cpp");
  if (!is_source(script)) {
    if (::access(script.c_str(), X_OK) != 0)
      return fail(ErrorKind::invalid,
                  given.path.string() + " is neither a C++ source (.cpp, .cc, .cxx) nor an executable");
    if (!given.parts.empty())
      return fail(ErrorKind::invalid, given.path.string() +
                                          " is compiled already: further sources, -I, -L and -l are for an actor "
                                          "script (x.cpp)");
    return script;
  }
  ScriptParts parts = given.parts;
  const auto sources = read_sources(script, parts);
  if (!sources) return tl::unexpected(sources.error());
  auto settings = load_compile_settings();
  if (!settings) return tl::unexpected(settings.error());
  auto cache = ScriptCache::open();
  if (!cache) return tl::unexpected(cache.error());
  auto kind = kind_of_all(*settings, *sources);
  if (!kind) return tl::unexpected(kind.error());
  if (*kind != &settings->plain) PACELINE_TRY(provide_precompiled_header(*settings, cache->folder()));

  const std::string key = script_key(*settings, **kind, *sources, parts);
  if (auto program = cache->find(key, script.stem())) return *program;
  auto made = cache->place_for_new(script.stem());
  if (!made) return tl::unexpected(made.error());
  const auto ended = compile(*settings, **kind, *sources, parts, *made);
  if (!ended || ended->code != 0) {
    fs::remove_all(made->parent_path(), failed);
    if (!ended) return tl::unexpected(ended.error());
    return fail(ErrorKind::invalid, given.path.string() + " does not compile: see the compiler's messages above");
  }
  return cache->store(key, *made);
}

}  // namespace paceline::cli
