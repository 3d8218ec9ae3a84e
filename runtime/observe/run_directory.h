#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/base/ids.h"
#include "runtime/base/result.h"

namespace paceline::observe {

/// Where a run keeps what it writes: `base`/2026-11-21_11-30-05-NAME[-2] with logs/ inside. Two runs
/// never get the same one, also when they start in the same second.
class RunDirectory {
 public:
  /// `name`: of the job; what is no letter, digit, '.', '_' or '-' becomes '_'. `base` is created as needed. Local
  /// time.
  static Result<RunDirectory> create(const std::string& base, std::string_view name,
                                     std::chrono::system_clock::time_point now);

  /// What create() tries first, without making it.
  static std::string path_for(const std::string& base, std::string_view name,
                              std::chrono::system_clock::time_point now);

  /// One that is there already.
  static RunDirectory at(std::string path) { return RunDirectory(std::move(path)); }

  /// `invalid` if a run has written to `path`: two in one place would mix.
  static Result<void> check_unused(const std::string& path);

  const std::string& path() const { return path_; }
  std::string logs() const { return path_ + "/logs"; }
  /// The last one.
  std::string checkpoint() const { return path_ + "/checkpoint.safetensors"; }
  /// One that a worker has written beside an evaluation's, until it takes its place.
  std::string fresh_checkpoint(Rank writer) const {
    return path_ + "/fresh-" + std::to_string(writer.value) + ".safetensors";
  }
  std::string best_checkpoint() const { return path_ + "/best.safetensors"; }
  /// Earlier ones, where they are kept.
  std::string checkpoints() const { return path_ + "/checkpoints"; }
  std::string configuration() const { return path_ + "/configuration.json"; }
  std::string metrics() const { return path_ + "/metrics.jsonl"; }

 private:
  explicit RunDirectory(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace paceline::observe
