#include "runtime/observe/trace.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/observe/atomic_file.h"
#include "runtime/observe/line_file.h"
#include "runtime/observe/trace_event.h"

namespace paceline::observe {

using Json = nlohmann::json;

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
  for (const auto& [what, name] : {std::pair("process_name", process_name), std::pair("thread_name", thread_name)}) {
    write_track_name(file_->line, {process, thread}, what, name);
    file_->keep(file_->lines.append(file_->line, file_->last));
  }
}

void TraceWriter::span(std::int64_t process, std::int64_t thread, std::string_view category, Instant begin, Instant end,
                       std::string_view args_json) {
  write_span(file_->line, {process, thread}, category, category, begin, end, args_json);
  file_->last = std::max(file_->last, end);
  file_->keep(file_->lines.append(file_->line, file_->last));
}

void TraceWriter::counter(std::int64_t process, std::string_view name, Instant at, double value) {
  if (!std::isfinite(value)) return;
  write_counter(file_->line, process, name, at, value);
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
  PACELINE_TRY(joined->write(kTraceBegin));
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
  PACELINE_TRY(joined->write(kTraceEnd));
  PACELINE_TRY(joined->commit());
  for (const fs::path& part : parts) fs::remove(part, code);
  return {};
}

}  // namespace paceline::observe
