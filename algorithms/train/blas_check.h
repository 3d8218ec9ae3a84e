#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace paceline::train {

/// What is wrong with the BLAS among these mapped libraries (the text of /proc/self/maps): nothing, or one line.
/// Debian's libtorch takes any libblas.so.3; the reference one makes matrix products 30 times slower.
std::optional<std::string> slow_blas_in(std::string_view maps);

/// Prints that line to stderr if it applies to this process.
void warn_if_blas_is_slow();

}  // namespace paceline::train
