#include "runtime/base/demangled.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>

namespace paceline {

std::string demangled(const char* type_name) {
  int status = 0;
  std::unique_ptr<char, decltype(&std::free)> name(abi::__cxa_demangle(type_name, nullptr, nullptr, &status),
                                                   &std::free);
  return status == 0 && name ? name.get() : type_name;
}

}  // namespace paceline
