#include "cli/text_file.h"

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <system_error>

namespace paceline::cli {

namespace fs = std::filesystem;

Result<std::string> read_text(const std::string& path, std::size_t most) {
  const bool standard = path == "-";
  std::error_code failed;
  if (!standard && !fs::exists(path, failed)) return fail(ErrorKind::not_found, path + ": there is no such file");
  if (!standard && fs::is_directory(path, failed)) return fail(ErrorKind::invalid, path + ": is a folder; give a file");
  const std::string too_large = path + ": has more than " + std::to_string(most >> 20) + " MiB; give a smaller one";
  if (!standard && fs::is_regular_file(path, failed) && fs::file_size(path, failed) > most)
    return fail(ErrorKind::invalid, too_large);
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> opened(standard ? nullptr : std::fopen(path.c_str(), "rb"),
                                                               [](std::FILE* file) { return std::fclose(file); });
  std::FILE* file = standard ? stdin : opened.get();
  if (!file) return fail(ErrorKind::invalid, path + ": cannot be read: " + std::generic_category().message(errno));
  std::string text;
  char chunk[1 << 16];
  while (const std::size_t got = std::fread(chunk, 1, sizeof chunk, file)) {
    text.append(chunk, got);
    if (text.size() > most) return fail(ErrorKind::invalid, too_large);
  }
  if (std::ferror(file)) return fail(ErrorKind::invalid, path + ": cannot be read");
  return text;
}

}  // namespace paceline::cli
