#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "runtime/base/instant.h"
#include "runtime/base/result.h"

namespace paceline::observe {

/// Appends lines to a file, buffered, a line never cut by a flush: what another process reads, or what a kill leaves
/// behind, is whole lines up to the last flush. Owned by one thread. After a failed write (disk full) it writes nothing
/// more and tells once.
class LineFile {
 public:
  /// Created with 0600 if it is not there. `invalid`/`internal`: cannot be opened.
  static Result<LineFile> open(const std::string& path);
  LineFile(LineFile&&) noexcept;
  LineFile& operator=(LineFile&&) noexcept;
  ~LineFile();

  /// `line` without its '\n'. Flushes when the buffer is full or the last flush is `kFlushEvery` before `now`.
  /// Fails once, when the disk does; succeeds (and drops the line) afterwards.
  Result<void> append(std::string_view line, Instant now);
  Result<void> flush();

  static constexpr Duration kFlushEvery = std::chrono::seconds(1);

 private:
  LineFile(int fd, std::string path);
  int fd_ = -1;
  std::string path_;
  std::string buffer_;
  bool broken_ = false;
  bool flushed_ever_ = false;
  Instant flushed_{};
};

}  // namespace paceline::observe
