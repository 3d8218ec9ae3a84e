#include "runtime/base/content_hash.h"

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include "runtime/base/splitmix.h"

namespace paceline {
namespace {

constexpr std::size_t kBlock = 1 << 20;  // Of a file that is read; whole words.

}  // namespace

void ContentHash::mix(std::uint64_t word) {
  low_ = splitmix(low_ ^ word);
  high_ = splitmix(high_ + (word ^ low_));
}

void ContentHash::mix(std::string_view bytes) {
  std::uint64_t word = 0;
  for (; bytes.size() >= sizeof word; bytes.remove_prefix(sizeof word)) {
    std::memcpy(&word, bytes.data(), sizeof word);
    mix(word);
  }
  if (bytes.empty()) return;
  word = 0;
  std::memcpy(&word, bytes.data(), bytes.size());
  mix(word);
}

void ContentHash::add(std::string_view part) {
  mix(part);
  mix(part.size());
}

std::string ContentHash::hex() const {
  char text[33];
  std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(high_),
                static_cast<unsigned long long>(low_));
  return text;
}

Result<std::string> hash_of_file(const std::string& path) {
  std::error_code ignored;
  std::ifstream file(path, std::ios::binary);
  if (!file || !std::filesystem::is_regular_file(path, ignored))
    return fail(ErrorKind::not_found, "cannot read " + path + ": is the path right?");
  ContentHash hash;
  std::string block(kBlock, '\0');
  std::uint64_t size = 0;
  while (file) {
    file.read(block.data(), static_cast<std::streamsize>(block.size()));
    const auto count = static_cast<std::size_t>(file.gcount());
    hash.mix(std::string_view(block.data(), count));
    size += count;
  }
  hash.mix(size);
  return hash.hex();
}

Result<std::string> hash_of_folder(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code failed;
  std::map<std::string, std::string> files;
  for (fs::directory_iterator it(path, failed), end; !failed && it != end; it.increment(failed)) {
    std::error_code gone;
    if (!it->is_regular_file(gone)) continue;
    const auto size = it->file_size(gone);
    files[it->path().filename().string()] =
        std::to_string(size) + " " + std::to_string(it->last_write_time(gone).time_since_epoch().count());
  }
  if (failed) return fail(ErrorKind::not_found, "cannot read the folder " + path + ": " + failed.message());
  ContentHash hash;
  for (const auto& [name, version] : files) {
    hash.add(name);
    hash.add(version);
  }
  return hash.hex();
}

}  // namespace paceline
