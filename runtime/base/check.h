#pragma once

namespace paceline {

/// Prints where and what, then aborts. For programmer errors only: users' mistakes are Errors.
[[noreturn]] void check_failed(const char* file, int line, const char* condition, const char* text);

}  // namespace paceline

/// On in release builds too.
#define PACELINE_CHECK(condition, text)                                               \
  do {                                                                                \
    if (!(condition)) ::paceline::check_failed(__FILE__, __LINE__, #condition, text); \
  } while (false)
