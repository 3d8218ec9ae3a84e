#pragma once

#include <cstddef>
#include <string>

#include "runtime/base/result.h"

namespace paceline::cli {

/// All of a file ("-": of standard input), if it has at most `most` bytes. `not_found`, or `invalid` if it is larger or
/// no file; the text begins with the path.
Result<std::string> read_text(const std::string& path, std::size_t most);

}  // namespace paceline::cli
