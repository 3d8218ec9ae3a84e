#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace paceline::observe {

// Files of a run directory, which anybody may have written: nothing but a regular file is read (another kind might
// never end, or never begin), and no more of it than is said. Errors name the path: `not_found`, `invalid` for what is
// no file or too large, else `internal`.

/// Of what describes a run, and of its record of decisions.
inline constexpr std::size_t kJsonBytesMax = std::size_t{64} << 20;
inline constexpr std::size_t kRecordBytesMax = std::size_t{1} << 30;
inline constexpr std::size_t kLineBytesMax = std::size_t{16} << 20;

/// All of a file, if it has at most `most` bytes.
Result<std::string> read_file(const std::string& path, std::size_t most);
/// Line by line, without their ends, of at most kLineBytesMax each. `whole`: false for a last one that has no end.
Result<void> read_lines(const std::string& path, const std::function<void(std::string_view line, bool whole)>& take);

}  // namespace paceline::observe
