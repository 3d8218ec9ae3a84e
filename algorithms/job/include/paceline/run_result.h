#pragma once

#include <string>

namespace paceline {

/// How a job ended.
struct RunResult {
  int code = 1;       ///< 0 done, 1 failed, 2 usage, 130 interrupted.
  double metric = 0;  ///< Last evaluated metric of the averaged model; NaN if none was.
  std::string json;   ///< The `result` event, as `paceline run --json` prints it.

  int exit_code() const { return code; }
};

}  // namespace paceline
