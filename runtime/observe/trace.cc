#include "runtime/observe/trace.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
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

bool is_plain(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c < 0x7f && c != '"' && c != '\\'; });
}

/// A line of JSON that is put together several times a step: no detours.
class Line {
 public:
  explicit Line(std::string& text) : text_(text) { text_.clear(); }

  Line& raw(std::string_view text) {
    text_.append(text);
    return *this;
  }
  /// A string with its quotes; bytes that are no UTF-8 are replaced.
  Line& quoted(std::string_view text) {
    if (!is_plain(text)) return raw(json_text(Json(std::string(text))));
    return raw("\"").raw(text).raw("\"");
  }
  Line& number(std::int64_t value) {
    char digits[24];
    return raw({digits, std::to_chars(digits, digits + sizeof digits, value).ptr});
  }
  /// Microseconds with all nanoseconds kept: "12.345".
  Line& microseconds(Duration time) {
    const std::int64_t ns = time.count();
    const std::uint64_t size = ns < 0 ? 0 - static_cast<std::uint64_t>(ns) : static_cast<std::uint64_t>(ns);
    if (ns < 0) raw("-");
    number(static_cast<std::int64_t>(size / 1000));
    const auto rest = static_cast<int>(size % 1000);
    const char fraction[] = {'.', static_cast<char>('0' + rest / 100), static_cast<char>('0' + rest / 10 % 10),
                             static_cast<char>('0' + rest % 10)};
    return raw({fraction, sizeof fraction});
  }
  Line& track(std::int64_t process, std::int64_t thread) {
    return raw("\"pid\":").number(process).raw(",\"tid\":").number(thread);
  }

 private:
  std::string& text_;
};

}  // namespace

class TraceWriter::File {
 public:
  explicit File(LineFile given) : lines(std::move(given)) {}
  void keep(Result<void> written) {
    if (!written && !problem) problem = std::move(written).error();
  }
  LineFile lines;
  std::string line;  ///< Being put together; its memory is used again and again.
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
    Line(file_->line)
        .raw("{\"ph\":\"M\",\"name\":")
        .quoted(what)
        .raw(",")
        .track(process, thread)
        .raw(",\"args\":{\"name\":")
        .quoted(name)
        .raw("}}");
    file_->keep(file_->lines.append(file_->line, file_->last));
  };
  line("process_name", process_name);
  line("thread_name", thread_name);
}

void TraceWriter::span(std::int64_t process, std::int64_t thread, std::string_view category, Instant begin, Instant end,
                       std::string_view args_json) {
  Line line(file_->line);
  line.raw("{\"ph\":\"X\",\"cat\":").quoted(category).raw(",\"name\":").quoted(category).raw(",");
  line.track(process, thread).raw(",\"ts\":").microseconds(begin.time_since_epoch());
  line.raw(",\"dur\":").microseconds(std::max(end - begin, Duration::zero()));
  if (!args_json.empty()) line.raw(",\"args\":").raw(args_json);
  line.raw("}");
  file_->last = std::max(file_->last, end);
  file_->keep(file_->lines.append(file_->line, file_->last));
}

void TraceWriter::counter(std::int64_t process, std::string_view name, Instant at, double value) {
  if (!std::isfinite(value)) return;
  Line(file_->line)
      .raw("{\"ph\":\"C\",\"name\":")
      .quoted(name)
      .raw(",\"pid\":")
      .number(process)
      .raw(",\"ts\":")
      .microseconds(at.time_since_epoch())
      .raw(",\"args\":{\"value\":")
      .raw(json_text(Json(value)))
      .raw("}}");
  file_->last = std::max(file_->last, at);
  file_->keep(file_->lines.append(file_->line, file_->last));
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
