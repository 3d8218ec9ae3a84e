#include "runtime/observe/trace_event.h"

#include <algorithm>
#include <charconv>

#include "runtime/base/json.h"

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
  Line& track(TraceTrack track) { return raw("\"pid\":").number(track.process).raw(",\"tid\":").number(track.thread); }
  Line& args(std::string_view json) { return json.empty() ? *this : raw(",\"args\":").raw(json); }

 private:
  std::string& text_;
};

}  // namespace

void write_track_name(std::string& line, TraceTrack track, std::string_view what, std::string_view name) {
  Line(line)
      .raw("{\"ph\":\"M\",\"name\":")
      .quoted(what)
      .raw(",")
      .track(track)
      .raw(",\"args\":{\"name\":")
      .quoted(name)
      .raw("}}");
}

void write_span(std::string& line, TraceTrack track, std::string_view category, std::string_view name, Instant begin,
                Instant end, std::string_view args_json) {
  Line(line)
      .raw("{\"ph\":\"X\",\"cat\":")
      .quoted(category)
      .raw(",\"name\":")
      .quoted(name)
      .raw(",")
      .track(track)
      .raw(",\"ts\":")
      .microseconds(begin.time_since_epoch())
      .raw(",\"dur\":")
      .microseconds(std::max(end - begin, Duration::zero()))
      .args(args_json)
      .raw("}");
}

void write_span_end(std::string& line, bool begins, TraceTrack track, std::string_view category, std::string_view name,
                    std::uint64_t id, Instant at, std::string_view args_json) {
  Line(line)
      .raw(begins ? "{\"ph\":\"b\",\"cat\":" : "{\"ph\":\"e\",\"cat\":")
      .quoted(category)
      .raw(",\"name\":")
      .quoted(name)
      .raw(",\"id\":")
      .quoted(std::to_string(id))
      .raw(",")
      .track(track)
      .raw(",\"ts\":")
      .microseconds(at.time_since_epoch())
      .args(args_json)
      .raw("}");
}

void write_counter(std::string& line, std::int64_t process, std::string_view name, Instant at, double value) {
  Line(line)
      .raw("{\"ph\":\"C\",\"name\":")
      .quoted(name)
      .raw(",\"pid\":")
      .number(process)
      .raw(",\"ts\":")
      .microseconds(at.time_since_epoch())
      .raw(",\"args\":{\"value\":")
      .raw(json_text(Json(value)))
      .raw("}}");
}

}  // namespace paceline::observe
