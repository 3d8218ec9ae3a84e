#pragma once

#include <string>
#include <string_view>

namespace paceline {

/// What somebody else wrote, as it can be shown on a terminal, written to a file and put into JSON: UTF-8, with U+FFFD
/// in place of bytes that are none, and '?' in place of control characters other than line feed and tab (a terminal
/// would obey them).
std::string readable(std::string_view text);

/// The first or the last `bytes_max` bytes of `text` at most, cut between two characters of UTF-8.
std::string_view first_of(std::string_view text, std::size_t bytes_max);
std::string_view last_of(std::string_view text, std::size_t bytes_max);

}  // namespace paceline
