#include "cli/script_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>

namespace paceline::cli {

namespace fs = std::filesystem;

namespace {

std::string hash_of(const fs::path& path) { return hash_of_file(path.string()).value_or("missing"); }

fs::path user_cache() {
  const char* xdg = std::getenv("XDG_CACHE_HOME");
  if (xdg && *xdg == '/') return fs::path(xdg) / "paceline";
  const char* home = std::getenv("HOME");
  if (home && *home == '/' && ::access(home, W_OK) == 0) return fs::path(home) / ".cache/paceline";
  return "/tmp/paceline-" + std::to_string(::getuid()) + "-cache";
}

/// What lies in the cache is run: nobody else may write there.
Result<void> check_ours(const fs::path& folder) {
  struct stat status {};
  if (::stat(folder.c_str(), &status) != 0) return fail_errno("look at the cache " + folder.string());
  if (status.st_uid == ::getuid() && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0) return {};
  return fail(ErrorKind::invalid, "the cache " + folder.string() +
                                      " belongs to somebody else, or others may write there: `chmod go-w` it, or set "
                                      "XDG_CACHE_HOME to a folder of yours");
}

}  // namespace

Result<std::string> read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in || fs::is_directory(path))
    return fail(ErrorKind::not_found, "cannot read " + path.string() + ": is the path right?");
  return std::string(std::istreambuf_iterator<char>(in), {});
}

Result<ScriptCache> ScriptCache::open() {
  const fs::path folder = user_cache() / "scripts";
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed) {
    return fail(ErrorKind::invalid, "cannot make the cache " + folder.string() + " (" + failed.message() +
                                        "): set XDG_CACHE_HOME to a folder of yours");
  }
  fs::permissions(folder, fs::perms::owner_all, failed);
  PACELINE_TRY(check_ours(user_cache()));
  PACELINE_TRY(check_ours(folder));
  return ScriptCache(folder);
}

std::optional<fs::path> ScriptCache::find(const std::string& key, const std::string& name) const {
  const fs::path entry = folder_ / key;
  std::ifstream headers(entry / "headers");
  if (!headers || !fs::exists(entry / name)) return std::nullopt;
  for (std::string line; std::getline(headers, line);) {
    const std::size_t blank = line.find(' ');
    if (blank == std::string::npos || hash_of(line.substr(blank + 1)) != line.substr(0, blank)) return std::nullopt;
  }
  std::error_code ignored;
  fs::last_write_time(entry, fs::file_time_type::clock::now(), ignored);
  return entry / name;
}

Result<fs::path> ScriptCache::place_for_new(const std::string& program) const {
  std::string name = (folder_ / "new-XXXXXX").string();
  if (!::mkdtemp(name.data())) return fail_errno("cannot write to the cache " + folder_.string());
  return fs::path(name) / program;
}

Result<fs::path> ScriptCache::store(const std::string& key, const fs::path& program) const {
  const fs::path made = program.parent_path();
  const fs::path entry = folder_ / key;
  std::set<std::string> used;
  std::error_code unreadable;
  for (const auto& file : fs::directory_iterator(made, unreadable)) {
    if (file.path().extension() != ".d") continue;
    const auto rule = read_file(file.path());
    if (!rule) return tl::unexpected(rule.error());
    for (const std::string& header : prerequisites(*rule)) used.insert(fs::absolute(header).string());
  }
  if (used.empty())
    return fail(ErrorKind::internal,
                "the compiler did not write what " + program.string() + " was made of: is the disk full?");
  {
    std::ofstream headers(made / "headers");
    for (const std::string& header : used) headers << hash_of(header) << ' ' << header << '\n';
    headers.close();
    if (!headers)
      return fail(ErrorKind::internal, "cannot write " + (made / "headers").string() + ": is the disk full?");
  }
  std::error_code ignored;
  if (const auto theirs =
          find(key, program.filename().string())) {  // Another run was faster: its program may run by now.
    fs::remove_all(made, ignored);
    return *theirs;
  }
  // The entry is there at every moment: a new one is moved into place, an old one (other headers) exchanged with ours,
  // which then holds the old one. That stays until it is among the oldest, for the runs that still use it.
  bool placed = false;
  for (int attempt = 0; attempt < 3 && !placed; ++attempt) {
    placed = ::rename(made.c_str(), entry.c_str()) == 0 ||
             ::renameat2(AT_FDCWD, made.c_str(), AT_FDCWD, entry.c_str(), RENAME_EXCHANGE) == 0;
  }
  if (!placed) return fail_errno("cannot move " + made.string() + " to " + entry.string());
  drop_oldest();
  return entry / program.filename();
}

void ScriptCache::drop_oldest() const {
  std::error_code ignored;
  std::vector<std::pair<fs::file_time_type, fs::path>> entries;
  for (const auto& entry : fs::directory_iterator(folder_, ignored)) {
    if (entry.is_directory(ignored)) entries.emplace_back(entry.last_write_time(ignored), entry.path());
  }
  if (entries.size() <= kEntriesMax) return;
  std::sort(entries.begin(), entries.end());
  entries.resize(entries.size() - kEntriesMax);
  for (const auto& [time, path] : entries) fs::remove_all(path, ignored);
}

std::vector<std::string> prerequisites(std::string_view rule) {
  std::vector<std::string> found;
  const std::size_t colon = rule.find(": ");
  if (colon == std::string_view::npos) return found;
  std::string word;
  const auto finish = [&] {
    if (!word.empty()) found.push_back(std::move(word));
    word.clear();
  };
  for (std::size_t i = colon + 1; i < rule.size(); ++i) {
    const char c = rule[i];
    const char next = i + 1 < rule.size() ? rule[i + 1] : '\0';
    if (c == '\\' && next == ' ') {
      word += ' ';
      ++i;
    } else if (c == '\\' && next == '\n') {
      ++i;
      finish();
    } else if (c == ' ' || c == '\n') {
      finish();
    } else {
      word += c;
    }
  }
  finish();
  return found;
}

}  // namespace paceline::cli
