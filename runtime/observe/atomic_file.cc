#include "runtime/observe/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

namespace paceline::observe {
namespace {

constexpr std::size_t kPendingMax = 256 * 1024;

/// Makes the rename itself durable; best effort, some file systems cannot.
void sync_folder_of(const std::string& path) {
  const auto slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  (void)::fsync(fd);
  ::close(fd);
}

std::atomic<unsigned> g_created{0};  // Makes temporary names of one process differ.

}  // namespace

AtomicFile::AtomicFile(int fd, std::string path, std::string temporary)
    : fd_(fd), path_(std::move(path)), temporary_(std::move(temporary)) {}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      path_(std::move(other.path_)),
      temporary_(std::move(other.temporary_)),
      buffer_(std::move(other.buffer_)) {}

AtomicFile::~AtomicFile() { abandon(); }

Result<AtomicFile> AtomicFile::create(const std::string& path) {
  for (int attempt = 0;; ++attempt) {
    std::string temporary = path + ".tmp-" + std::to_string(::getpid()) + "-" + std::to_string(g_created++);
    const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd >= 0) return AtomicFile(fd, path, std::move(temporary));
    if (errno != EEXIST || attempt == 100) return fail_errno("create " + temporary);
  }
}

Error AtomicFile::failed(std::string_view what) const {
  const std::string cause = std::strerror(errno);
  return {ErrorKind::internal, std::string(what) + " " + path_ + ": " + cause +
                                   "; an older file of that name is unchanged" +
                                   (errno == ENOSPC || errno == EDQUOT ? "; free some space" : "")};
}

void AtomicFile::abandon() {
  if (fd_ < 0) return;
  ::close(std::exchange(fd_, -1));
  ::unlink(temporary_.c_str());
}

Result<void> AtomicFile::flush() {
  std::string_view rest = buffer_;
  while (!rest.empty()) {
    const ssize_t written = ::write(fd_, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      Error error = failed("write");
      abandon();
      return tl::unexpected(std::move(error));
    }
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
  buffer_.clear();
  return {};
}

Result<void> AtomicFile::write(std::string_view bytes) {
  if (fd_ < 0) return fail(ErrorKind::invalid, "write " + path_ + ": it was committed or failed before");
  buffer_.append(bytes);
  return buffer_.size() < kPendingMax ? Result<void>() : flush();
}

Result<void> AtomicFile::commit() {
  if (fd_ < 0) return fail(ErrorKind::invalid, "commit " + path_ + ": it was committed or failed before");
  PACELINE_TRY(flush());
  if (::fsync(fd_) < 0 || ::rename(temporary_.c_str(), path_.c_str()) < 0) {
    Error error = failed("write");
    abandon();
    return tl::unexpected(std::move(error));
  }
  ::close(std::exchange(fd_, -1));
  sync_folder_of(path_);
  return {};
}

Result<void> write_json_atomic(const std::string& path, std::string_view text) {
  auto file = AtomicFile::create(path);
  if (!file) return tl::unexpected(file.error());
  PACELINE_TRY(file->write(text));
  return file->commit();
}

}  // namespace paceline::observe
