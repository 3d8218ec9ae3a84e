#pragma once

#include <string>

namespace paceline {

/// A type as C++ writes it, from the name that type_info has for it; what is no such name comes back as it is.
std::string demangled(const char* type_name);

}  // namespace paceline
