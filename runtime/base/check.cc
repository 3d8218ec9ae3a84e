#include "runtime/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace paceline {

void check_failed(const char* file, int line, const char* condition, const char* text) {
  std::fprintf(stderr, "%s:%d: check failed: %s (%s)\n", file, line, condition, text);
  std::abort();
}

}  // namespace paceline
