#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace paceline::observe {

/// Columns that UTF-8 text takes on a terminal: one a code point, none for combining marks (U+0300-036F) and for colour
/// sequences (ESC [ … m). East Asian wide characters count as two.
std::size_t text_width(std::string_view text);

/// The longest beginning that fits into `columns`, never cutting a code point; colour is reset if a sequence was cut
/// off.
std::string truncate(std::string_view text, std::size_t columns);

}  // namespace paceline::observe
