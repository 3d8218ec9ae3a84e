#include "runtime/process/log_tail.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "runtime/base/readable.h"
#include "runtime/process/fd.h"

namespace paceline::process {

off_t file_size(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? status.st_size : 0;
}

std::string log_tail(const std::string& path, off_t from, std::size_t lines_max) {
  constexpr std::size_t kBytesMax = 2048;
  const off_t size = file_size(path);
  // A byte more than is shown: of a character that begins before, nothing is.
  const off_t start = std::max<off_t>({from, 0, size - static_cast<off_t>(kBytesMax) - 1});
  if (start >= size) return {};
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return {};
  std::string bytes(static_cast<std::size_t>(size - start), '\0');
  const ssize_t got = ::pread(file.get(), bytes.data(), bytes.size(), start);
  bytes.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));

  std::vector<std::string_view> lines;
  for (std::string_view rest = last_of(bytes, kBytesMax); !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    if (!line.empty()) lines.push_back(line);
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
  }
  std::string joined;
  for (std::size_t i = lines.size() - std::min(lines.size(), lines_max); i < lines.size(); ++i) {
    if (!joined.empty()) joined += " | ";
    joined += lines[i];
  }
  return readable(joined);
}

}  // namespace paceline::process
