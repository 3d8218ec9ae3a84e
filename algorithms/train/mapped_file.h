#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "runtime/base/result.h"

namespace paceline::train {

/// A file that lies in memory, read only: what is not asked for is not read, and what was read is the system's to
/// forget. Where it is cut off while it is used, zeros stand instead of what is gone (the process gets SIGBUS for
/// looking there, which would end it): so what was read counts once check_unchanged() has said so, after it was read.
class MappedFile {
 public:
  MappedFile() = default;
  /// `not_found`: cannot be opened, is no file, or is empty.
  static Result<MappedFile> open(const std::string& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  bool is_open() const { return data_ != nullptr; }
  /// `invalid` if the file has been written since: what it shows now is nobody's.
  Result<void> check_unchanged() const;

 private:
  struct Mapping;

  std::string path_;
  int fd_ = -1;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  long long written_ns_ = 0;
  Mapping* mapping_ = nullptr;  // What the signal's handler knows of it.
};

}  // namespace paceline::train
