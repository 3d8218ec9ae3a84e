#pragma once

#include <string>

namespace paceline::observe {

/// printf into a string of whatever length it takes.
std::string format(const char* pattern, ...) __attribute__((format(printf, 1, 2)));

}  // namespace paceline::observe
