#include "runtime/observe/run_directory.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>

namespace paceline::observe {
namespace {

constexpr int kSameNameMax = 1000;
constexpr std::size_t kNameMax = 64;

std::string file_name(std::string_view name) {
  std::string clean(name.substr(0, kNameMax));
  for (char& c : clean)
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
          c == '-'))
      c = '_';
  return clean.empty() ? "run" : clean;
}

}  // namespace

std::string RunDirectory::path_for(const std::string& base, std::string_view name,
                                   std::chrono::system_clock::time_point now) {
  const std::time_t at = std::chrono::system_clock::to_time_t(now);
  std::tm local{};
  ::localtime_r(&at, &local);
  char stamp[32];
  std::strftime(stamp, sizeof stamp, "%Y-%m-%d_%H-%M-%S", &local);
  return base + "/" + stamp + "-" + file_name(name);
}

Result<RunDirectory> RunDirectory::create(const std::string& base, std::string_view name,
                                          std::chrono::system_clock::time_point now) {
  std::error_code code;
  std::filesystem::create_directories(base, code);
  if (code) return fail(ErrorKind::invalid, "create " + base + " for the run's files: " + code.message());

  const std::string wanted = path_for(base, name, now);
  for (int count = 1; count <= kSameNameMax; ++count) {
    const std::string path = count == 1 ? wanted : wanted + "-" + std::to_string(count);
    if (::mkdir(path.c_str(), 0755) == 0) {
      RunDirectory run(path);
      if (::mkdir(run.logs().c_str(), 0755) < 0) return fail_errno("create a folder in " + path);
      return run;
    }
    if (errno != EEXIST && errno != ENOENT) return fail_errno("create " + path + " for the run's files");
    std::filesystem::create_directories(base, code);  // Whose last run may just have gone.
  }
  return fail(ErrorKind::overloaded,
              wanted + " and " + std::to_string(kSameNameMax) + " variants exist: remove old runs");
}

Result<void> RunDirectory::check_unused(const std::string& path) {
  const RunDirectory run(path);
  std::error_code ignored;
  if (std::filesystem::exists(run.configuration(), ignored) || std::filesystem::exists(run.metrics(), ignored))
    return fail(ErrorKind::invalid,
                "--run-dir " + path + " holds a run already: name another directory, or remove that one");
  return {};
}

}  // namespace paceline::observe
