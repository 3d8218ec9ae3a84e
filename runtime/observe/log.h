#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace paceline::observe {

/// An agent's log: lines with UTC time, level and the agent's name. Any thread. Behind it: spdlog.
class Log {
 public:
  enum class Level { debug, info, warning, error };

  /// Appends to `path` (created with 0600), flushed at each warning and error and by flush(). The level is PACELINE_LOG
  /// (debug, info, warning, error, off), info if unset; another word is `invalid`.
  static Result<Log> open(const std::string& path, std::string_view name);
  Log(Log&&) noexcept;
  Log& operator=(Log&&) noexcept;
  ~Log();

  void write(Level level, std::string_view text);
  void debug(std::string_view text) { write(Level::debug, text); }
  void info(std::string_view text) { write(Level::info, text); }
  void warning(std::string_view text) { write(Level::warning, text); }
  void error(std::string_view text) { write(Level::error, text); }
  bool enabled(Level level) const;
  void flush();

 private:
  struct State;
  explicit Log(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace paceline::observe
