#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/content_hash.h"
#include "runtime/base/result.h"

namespace paceline::cli {

/// A file's whole content; `not_found`.
Result<std::string> read_file(const std::filesystem::path& path);

/// Executables made from scripts: FOLDER/KEY/NAME with the hashes of the headers that it was made from,
/// FOLDER/KEY/headers. Safe with several processes: an entry appears whole (rename), and a program that runs survives
/// its replacement. Bound: kEntriesMax, oldest go first.
class ScriptCache {
 public:
  static constexpr std::size_t kEntriesMax = 64;

  /// $XDG_CACHE_HOME/paceline, else ~/.cache/paceline, else /tmp/paceline-UID-cache; created.
  static Result<ScriptCache> open();
  explicit ScriptCache(std::filesystem::path folder) : folder_(std::move(folder)) {}

  const std::filesystem::path& folder() const { return folder_; }
  /// The program `name` of `key` if it is there and none of its headers changed; marks it as used.
  std::optional<std::filesystem::path> find(const std::string& key, const std::string& name) const;
  /// A place for a new program `name` of this process, in the cache's file system, in a folder of its own.
  Result<std::filesystem::path> place_for_new(const std::string& name) const;
  /// Takes that folder over, with the make rules in its files *.d. Returns where the program lies now.
  Result<std::filesystem::path> store(const std::string& key, const std::filesystem::path& program) const;

 private:
  void drop_oldest() const;
  std::filesystem::path folder_;
};

/// The prerequisites in a make rule as compilers write it ("out: a.h b\ c.h \").
std::vector<std::string> prerequisites(std::string_view rule);

}  // namespace paceline::cli
