#include "runtime/observe/trace.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/observe/atomic_file.h"
#include "runtime/observe/line_file.h"

namespace paceline::observe {
namespace {

using Json = nlohmann::json;

/// A JSON string with its quotes; bytes that are no UTF-8 are replaced.
std::string quoted(std::string_view text) { return json_text(Json(std::string(text))); }

/// Microseconds with all nanoseconds kept: "12.345".
std::string microseconds(Duration time) {
  const auto ns = time.count();
  const unsigned long long size =
      ns < 0 ? 0ULL - static_cast<unsigned long long>(ns) : static_cast<unsigned long long>(ns);
  char text[40];
  std::snprintf(text, sizeof text, "%s%llu.%03llu", ns < 0 ? "-" : "", size / 1000, size % 1000);
  return text;
}

std::string track(std::int64_t process, std::int64_t thread) {
  return "\"pid\":" + std::to_string(process) + ",\"tid\":" + std::to_string(thread);
}

}  // namespace

class TraceWriter::File {
 public:
  explicit File(LineFile given) : lines(std::move(given)) {}
  void keep(Result<void> written) {
    if (!written && !problem) problem = std::move(written).error();
  }
  LineFile lines;
  Instant last{};
  std::optional<Error> problem;
};

TraceWriter::TraceWriter(std::unique_ptr<File> file) : file_(std::move(file)) {}
TraceWriter::TraceWriter(TraceWriter&&) noexcept = default;
TraceWriter& TraceWriter::operator=(TraceWriter&&) noexcept = default;
TraceWriter::~TraceWriter() = default;

Result<TraceWriter> TraceWriter::open(const std::string& path) {
  auto lines = LineFile::open(path);
  if (!lines) return tl::unexpected(lines.error());
  return TraceWriter(std::make_unique<File>(std::move(*lines)));
}

void TraceWriter::name_track(std::int64_t process, std::int64_t thread, std::string_view process_name,
                             std::string_view thread_name) {
  const auto line = [&](std::string_view what, std::string_view name) {
    file_->keep(file_->lines.append("{\"ph\":\"M\",\"name\":\"" + std::string(what) + "\"," + track(process, thread) +
                                        ",\"args\":{\"name\":" + quoted(name) + "}}",
                                    file_->last));
  };
  line("process_name", process_name);
  line("thread_name", thread_name);
}

void TraceWriter::span(std::int64_t process, std::int64_t thread, std::string_view category, Instant begin, Instant end,
                       std::string_view args_json) {
  std::string line = "{\"ph\":\"X\",\"cat\":" + quoted(category) + ",\"name\":" + quoted(category) + "," +
                     track(process, thread) + ",\"ts\":" + microseconds(begin.time_since_epoch()) +
                     ",\"dur\":" + microseconds(std::max(end - begin, Duration::zero()));
  if (!args_json.empty()) line.append(",\"args\":").append(args_json);
  line += '}';
  file_->last = std::max(file_->last, end);
  file_->keep(file_->lines.append(line, file_->last));
}

void TraceWriter::counter(std::int64_t process, std::string_view name, Instant at, double value) {
  if (!std::isfinite(value)) return;
  const std::string line = "{\"ph\":\"C\",\"name\":" + quoted(name) + ",\"pid\":" + std::to_string(process) +
                           ",\"ts\":" + microseconds(at.time_since_epoch()) +
                           ",\"args\":{\"value\":" + json_text(Json(value)) + "}}";
  file_->last = std::max(file_->last, at);
  file_->keep(file_->lines.append(line, file_->last));
}

void TraceWriter::flush() { file_->keep(file_->lines.flush()); }

Result<void> TraceWriter::error() {
  if (!file_->problem) return {};
  auto error = tl::unexpected(std::move(*file_->problem));
  file_->problem.reset();
  return error;
}

Result<void> join_traces(const std::string& directory) {
  namespace fs = std::filesystem;
  std::error_code code;
  std::vector<fs::path> parts;
  for (fs::directory_iterator it(directory, code), end; !code && it != end; it.increment(code))
    if (it->path().extension() == ".trace") parts.push_back(it->path());
  if (code) return fail(ErrorKind::not_found, "read " + directory + ": " + code.message());
  std::sort(parts.begin(), parts.end());

  auto joined = AtomicFile::create(directory + "/trace.json");
  if (!joined) return tl::unexpected(joined.error());
  PACELINE_TRY(joined->write("{\"displayTimeUnit\":\"ms\",\"traceEvents\":["));
  bool first = true;
  for (const fs::path& part : parts) {
    std::ifstream in(part);
    if (!in) return fail_errno("open " + part.string());
    for (std::string line; std::getline(in, line);) {
      if (in.eof() || !Json::accept(line)) continue;  // Without its end of line: cut off.
      PACELINE_TRY(joined->write(first ? "\n" : ",\n"));
      PACELINE_TRY(joined->write(line));
      first = false;
    }
  }
  PACELINE_TRY(joined->write("\n]}\n"));
  PACELINE_TRY(joined->commit());
  for (const fs::path& part : parts) fs::remove(part, code);
  return {};
}

}  // namespace paceline::observe
