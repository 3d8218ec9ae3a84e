#pragma once

#include <string_view>

namespace paceline::report {

/// A file that the build put into the executable (cli/report/CMakeLists.txt names them); "" if there is none of that
/// name.
std::string_view asset(std::string_view name);

}  // namespace paceline::report
