#include "runtime/base/readable.h"

#include <algorithm>
#include <iterator>

#include <utf8.h>

namespace paceline {
namespace {

bool is_plain(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte >= 0x20 && byte < 0x7f) || c == '\n' || c == '\t';
}

constexpr std::size_t kContinuationsMax = 3;
bool continues(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

/// Of C0, or of C1, which UTF-8 writes as 0xc2 and a byte below 0xa0.
bool is_control(char32_t point) {
  return (point < 0x20 && point != '\n' && point != '\t') || (point >= 0x7f && point < 0xa0);
}

}  // namespace

std::string readable(std::string_view text) {
  if (std::all_of(text.begin(), text.end(), is_plain)) return std::string(text);
  std::string valid;
  valid.reserve(text.size());
  utf8::replace_invalid(text.begin(), text.end(), std::back_inserter(valid));
  std::string shown;
  shown.reserve(valid.size());
  for (auto at = valid.begin(); at != valid.end();) {
    const char32_t point = utf8::unchecked::next(at);
    utf8::unchecked::append(is_control(point) ? U'?' : point, std::back_inserter(shown));
  }
  return shown;
}

std::string_view first_of(std::string_view text, std::size_t bytes_max) {
  if (text.size() <= bytes_max) return text;
  std::size_t end = bytes_max;
  while (end > 0 && bytes_max - end < kContinuationsMax && continues(text[end])) --end;
  return text.substr(0, end);
}

std::string_view last_of(std::string_view text, std::size_t bytes_max) {
  if (text.size() <= bytes_max) return text;
  std::size_t begin = text.size() - bytes_max;
  for (std::size_t i = 0; i < kContinuationsMax && begin < text.size() && continues(text[begin]); ++i) ++begin;
  return text.substr(begin);
}

}  // namespace paceline
