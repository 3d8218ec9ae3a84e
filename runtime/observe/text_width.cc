#include "runtime/observe/text_width.h"

#include <algorithm>
#include <cstdint>

namespace paceline::observe {
namespace {

struct Glyph {
  std::size_t bytes;
  std::size_t columns;
  bool colour = false;
};

/// The first glyph of `text` (not empty). Bytes that are no UTF-8 count one column each.
Glyph first_glyph(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) == 0x1b && text.size() > 1 && text[1] == '[') {
    const auto end = text.find('m');
    if (end != std::string_view::npos) return {end + 1, 0, true};
  }
  std::size_t length = byte(0) < 0x80 ? 1 : byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : byte(0) >= 0xc0 ? 2 : 1;
  if (length == 1) return {1, 1};
  if (length > text.size()) return {1, 1};
  std::uint32_t point = byte(0) & (0xffu >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {1, 1};
    point = point << 6 | (byte(i) & 0x3f);
  }
  const bool combining = point >= 0x300 && point <= 0x36f;
  const bool wide = (point >= 0x1100 && point <= 0x115f) || (point >= 0x2e80 && point <= 0xa4cf) ||
                    (point >= 0xac00 && point <= 0xd7a3) || (point >= 0xf900 && point <= 0xfaff) ||
                    (point >= 0xfe30 && point <= 0xfe6f) || (point >= 0xff00 && point <= 0xff60) ||
                    (point >= 0x1f300 && point <= 0x1faff);
  return {length, combining ? 0u : wide ? 2u : 1u};
}

}  // namespace

std::size_t text_width(std::string_view text) {
  std::size_t columns = 0;
  while (!text.empty()) {
    const Glyph glyph = first_glyph(text);
    columns += glyph.columns;
    text.remove_prefix(glyph.bytes);
  }
  return columns;
}

std::string truncate(std::string_view text, std::size_t columns) {
  std::size_t used = 0, kept = 0;
  bool coloured = false;
  while (kept < text.size()) {
    const Glyph glyph = first_glyph(text.substr(kept));
    if (used + glyph.columns > columns) return std::string(text.substr(0, kept)) + (coloured ? "\x1b[0m" : "");
    if (glyph.colour) coloured = text.substr(kept, glyph.bytes) != "\x1b[0m";
    used += glyph.columns;
    kept += glyph.bytes;
  }
  return std::string(text);
}

}  // namespace paceline::observe
