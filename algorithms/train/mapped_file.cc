#include "algorithms/train/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

namespace paceline::train {
namespace {

long long written_ns(const struct stat& status) {
  return static_cast<long long>(status.st_mtim.tv_sec) * 1'000'000'000 + status.st_mtim.tv_nsec;
}

}  // namespace

Result<MappedFile> MappedFile::open(const std::string& path) {
  MappedFile file;
  file.path_ = path;
  file.fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat status {};
  if (file.fd_ < 0 || ::fstat(file.fd_, &status) != 0 || !S_ISREG(status.st_mode))
    return fail(ErrorKind::not_found, "cannot read " + path + ": is the path right?");
  if (status.st_size == 0) return fail(ErrorKind::invalid, path + " is empty");
  file.size_ = static_cast<std::size_t>(status.st_size);
  file.written_ns_ = written_ns(status);
  void* const mapped = ::mmap(nullptr, file.size_, PROT_READ, MAP_SHARED, file.fd_, 0);
  if (mapped == MAP_FAILED) return fail(ErrorKind::internal, "cannot map " + path + " into memory");
  file.data_ = static_cast<const std::byte*>(mapped);
  return file;
}

MappedFile::MappedFile(MappedFile&& other) noexcept { *this = std::move(other); }

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(written_ns_, other.written_ns_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
  if (fd_ >= 0) ::close(fd_);
}

Result<void> MappedFile::check_unchanged() const {
  struct stat status {};
  if (::fstat(fd_, &status) == 0 && static_cast<std::size_t>(status.st_size) == size_ &&
      written_ns(status) == written_ns_)
    return {};
  return fail(ErrorKind::invalid, path_ + " was written while it was used: begin again with a file that nobody writes");
}

}  // namespace paceline::train
