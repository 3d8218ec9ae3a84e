#include "runtime/observe/log.h"

#include <fcntl.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <optional>

namespace paceline::observe {
namespace {

spdlog::level::level_enum spdlog_level(Log::Level level) {
  switch (level) {
    case Log::Level::debug: return spdlog::level::debug;
    case Log::Level::info: return spdlog::level::info;
    case Log::Level::warning: return spdlog::level::warn;
    case Log::Level::error: return spdlog::level::err;
  }
  return spdlog::level::err;
}

std::optional<spdlog::level::level_enum> level_of(std::string_view word) {
  if (word == "debug") return spdlog::level::debug;
  if (word == "info" || word.empty()) return spdlog::level::info;
  if (word == "warning") return spdlog::level::warn;
  if (word == "error") return spdlog::level::err;
  if (word == "off") return spdlog::level::off;
  return std::nullopt;
}

}  // namespace

struct Log::State {
  spdlog::logger logger;
};

Log::Log(std::unique_ptr<State> state) : state_(std::move(state)) {}
Log::Log(Log&&) noexcept = default;
Log& Log::operator=(Log&&) noexcept = default;
Log::~Log() = default;

Result<Log> Log::open(const std::string& path, std::string_view name) {
  const char* word = std::getenv("PACELINE_LOG");
  const auto level = level_of(word ? word : "");
  if (!level)
    return fail(ErrorKind::invalid,
                "PACELINE_LOG is '" + std::string(word) + "': use debug, info, warning, error or off");
  const int fd =
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);  // spdlog would create it for all to read.
  if (fd < 0) return fail_errno("open log " + path);
  ::close(fd);
  try {
    auto sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(path);
    auto state = std::make_unique<State>(State{spdlog::logger(std::string(name), std::move(sink))});
    state->logger.set_level(*level);
    state->logger.flush_on(spdlog::level::warn);
    state->logger.set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %l %n: %v", spdlog::pattern_time_type::utc);
    return Log(std::move(state));
  } catch (const std::exception& e) {
    return fail(ErrorKind::internal, "open log " + path + ": " + e.what());
  }
}

void Log::write(Level level, std::string_view text) {
  state_->logger.log(spdlog_level(level), spdlog::string_view_t(text.data(), text.size()));
}
bool Log::enabled(Level level) const { return state_->logger.should_log(spdlog_level(level)); }
void Log::flush() { state_->logger.flush(); }

}  // namespace paceline::observe
