#pragma once

#include <paceline.h>

#include <chrono>
#include <cstdio>
#include <string>

/// For actor scripts that check their own answers: what is wrong goes to standard error, and into the exit status.
namespace paceline::test {

inline int failures = 0;

inline void expect(bool condition, const std::string& what) {
  if (condition) return;
  std::fprintf(stderr, "wrong: %s\n", what.c_str());
  ++failures;
}

/// What `run` throws; empty: nothing.
template <class Do>
std::string error_of(Do run) {
  try {
    run();
  } catch (const TaskError& error) {
    return error.what();
  }
  return "";
}

inline bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

using Clock = std::chrono::steady_clock;
inline double since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

/// Of main.
inline int exit_status() { return failures == 0 ? 0 : 1; }

}  // namespace paceline::test
