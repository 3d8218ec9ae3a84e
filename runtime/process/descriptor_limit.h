#pragma once

#include <cstddef>

namespace paceline::process {

/// Raises this process's limit of open descriptors (RLIMIT_NOFILE) as far as it may without privileges, and returns
/// what it is then. Processes that are started afterwards inherit it.
std::size_t raise_descriptor_limit();

}  // namespace paceline::process
