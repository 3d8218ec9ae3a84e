#pragma once

#include <string>
#include <string_view>

#include "runtime/base/json.h"
#include "runtime/base/result.h"

namespace paceline::simulate {

/// The whole of `text` as one JSON value; no comments, no member twice, no number that a double cannot hold, nesting of
/// at most kNestingMax. `invalid` is one line: line and column, or the path of the member.
Result<nlohmann::json> parse_strict(std::string_view text);
inline constexpr std::size_t kNestingMax = 16;

/// On one line, in ASCII: what an error may repeat of a text.
std::string printable(std::string text);

}  // namespace paceline::simulate
