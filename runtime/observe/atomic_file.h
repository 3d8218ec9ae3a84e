#pragma once

#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace paceline::observe {

/// A file that appears, or replaces an old one, as a whole or not at all: written beside its place, synced, renamed.
/// Without commit(), or after a failure, nothing is left and the old one stays. Mode 0644 less the umask.
class AtomicFile {
 public:
  static Result<AtomicFile> create(const std::string& path);
  AtomicFile(AtomicFile&&) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  ~AtomicFile();

  /// Buffered: a full disk may be told by a later call.
  Result<void> write(std::string_view bytes);
  Result<void> commit();

 private:
  AtomicFile(int fd, std::string path, std::string temporary);
  Result<void> flush();
  void abandon();
  /// "write X: No space left on device; the old file, if any, is unchanged".
  Error failed(std::string_view what) const;

  int fd_ = -1;
  std::string path_, temporary_, buffer_;
};

/// All of `text` as the new content of `path`.
Result<void> write_json_atomic(const std::string& path, std::string_view text);

}  // namespace paceline::observe
