#include "algorithms/job/resume.h"

#include <cstdint>
#include <filesystem>
#include <fstream>

#include "runtime/base/json.h"
#include "runtime/observe/run_directory.h"

namespace paceline::job {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kHeaderMax = 100'000'000;  // As the format has it.

/// The header of a safetensors file; null where there is none.
nlohmann::json header_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::uint64_t length = 0;
  std::error_code failed;
  if (!file.read(reinterpret_cast<char*>(&length), sizeof length) || length > kHeaderMax ||
      length > fs::file_size(path, failed) || failed)
    return nullptr;
  std::string text(length, '\0');
  if (!file.read(text.data(), static_cast<std::streamsize>(length))) return nullptr;
  return parse_json(text);
}

}  // namespace

Result<void> check_resume(const std::string& path) {
  if (path.empty()) return {};
  std::error_code ignored;
  fs::path given = path;
  if (!fs::exists(given, ignored)) return fail(ErrorKind::not_found, "--resume " + path + ": no such run or file");
  if (fs::is_directory(given, ignored)) {
    given = observe::RunDirectory::at(path).checkpoint();
    if (!fs::exists(given, ignored))
      return fail(ErrorKind::not_found,
                  "--resume " + path + ": that run has no checkpoint; they are written at evaluations (me.evaluate)");
  }
  const auto header = header_of(given);
  const auto metadata = header.is_object() ? header.find("__metadata__") : header.end();
  if (header.is_object() && metadata != header.end() && metadata->is_object() &&
      metadata->value("paceline", nlohmann::json()) == kCheckpointFormat)
    return {};
  return fail(ErrorKind::invalid, "--resume " + path +
                                      ": not a checkpoint of this version of Paceline: a model alone is read with "
                                      "paceline::load, before me.share");
}

}  // namespace paceline::job
