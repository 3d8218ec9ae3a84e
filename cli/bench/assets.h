#pragma once

#include <string_view>

namespace paceline::bench {

/// A file of the script that the build put into the executable (cli/bench/CMakeLists.txt names them); "" if there is
/// none of that name.
std::string_view asset(std::string_view name);

}  // namespace paceline::bench
