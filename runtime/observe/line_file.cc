#include "runtime/observe/line_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace paceline::observe {
namespace {
constexpr std::size_t kLinesMax = 64 * 1024;
}

LineFile::LineFile(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}

Result<LineFile> LineFile::open(const std::string& path) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd < 0) return fail_errno("open " + path);
  return LineFile(fd, path);
}

LineFile::LineFile(LineFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      path_(std::move(other.path_)),
      buffer_(std::exchange(other.buffer_, {})),
      broken_(other.broken_),
      flushed_ever_(other.flushed_ever_),
      flushed_(other.flushed_) {}

LineFile& LineFile::operator=(LineFile&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(path_, other.path_);
  std::swap(buffer_, other.buffer_);
  std::swap(broken_, other.broken_);
  std::swap(flushed_ever_, other.flushed_ever_);
  std::swap(flushed_, other.flushed_);
  return *this;
}

LineFile::~LineFile() {
  if (fd_ < 0) return;
  (void)flush();
  ::close(fd_);
}

Result<void> LineFile::append(std::string_view line, Instant now) {
  if (broken_) return {};
  buffer_.append(line).push_back('\n');
  if (!flushed_ever_) flushed_ = now;  // The first second is buffered, too.
  flushed_ever_ = true;
  if (buffer_.size() < kLinesMax && now - flushed_ < kFlushEvery) return {};
  flushed_ = now;
  return flush();
}

Result<void> LineFile::flush() {
  if (broken_) return {};
  std::string_view rest = buffer_;
  while (!rest.empty()) {
    const ssize_t written = ::write(fd_, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      broken_ = true;
      auto error = fail_errno("write " + path_);
      error.value().text += ": nothing more is written there; the run goes on";
      buffer_.clear();
      return error;
    }
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
  buffer_.clear();
  return {};
}

}  // namespace paceline::observe
