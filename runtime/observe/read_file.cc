#include "runtime/observe/read_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

namespace paceline::observe {
namespace {

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

Result<File> open_regular(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);  // Of a pipe nobody waits for the other end.
  if (fd < 0 && errno == ENOENT) return fail(ErrorKind::not_found, "there is no " + path);
  if (fd < 0) return fail_errno("read " + path);
  struct stat status {};
  if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(fd);
    return fail(ErrorKind::invalid, path + " is no regular file");
  }
  return File(::fdopen(fd, "rb"), [](std::FILE* file) { return std::fclose(file); });
}

std::string too_large(const std::string& path, const char* what, std::size_t most) {
  return path + " has " + what + std::to_string(most >> 20) + " MiB: nothing that a run writes is so large";
}

/// The next bytes; none at the end.
Result<std::string_view> next_of(std::FILE* file, std::string& chunk, const std::string& path) {
  errno = 0;
  const std::size_t got = std::fread(chunk.data(), 1, chunk.size(), file);
  if (got == 0 && std::ferror(file) != 0) return fail_errno("read " + path);
  return std::string_view(chunk.data(), got);
}

}  // namespace

Result<std::string> read_file(const std::string& path, std::size_t most) {
  const auto file = open_regular(path);
  if (!file) return tl::unexpected(file.error());
  std::string text;
  std::string chunk(1 << 16, '\0');
  while (true) {
    const auto more = next_of(file->get(), chunk, path);
    if (!more) return tl::unexpected(more.error());
    if (more->empty()) return text;
    text += *more;
    if (text.size() > most) return fail(ErrorKind::invalid, too_large(path, "more than ", most));
  }
}

Result<void> read_lines(const std::string& path, const std::function<void(std::string_view, bool)>& take) {
  const auto file = open_regular(path);
  if (!file) return tl::unexpected(file.error());
  std::string begun;
  std::string chunk(1 << 16, '\0');
  while (true) {
    const auto more = next_of(file->get(), chunk, path);
    if (!more) return tl::unexpected(more.error());
    if (more->empty()) break;
    std::string_view rest = *more;
    for (auto end = rest.find('\n'); end != rest.npos; end = rest.find('\n')) {
      if (begun.empty()) {
        take(rest.substr(0, end), true);
      } else {
        take(begun.append(rest.substr(0, end)), true);
        begun.clear();
      }
      rest.remove_prefix(end + 1);
    }
    begun += rest;
    if (begun.size() > kLineBytesMax)
      return fail(ErrorKind::invalid, too_large(path, "a line of more than ", kLineBytesMax));
  }
  if (!begun.empty()) take(begun, false);
  return {};
}

}  // namespace paceline::observe
