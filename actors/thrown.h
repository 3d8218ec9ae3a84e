#pragma once

#include <string>

#include "runtime/base/result.h"

namespace paceline::actors {

/// In a catch block: type and text of what was thrown, in one line.
std::string thrown();

/// The same as an error of kind `invalid`, with `where` behind it; a TaskError as itself. A thread's cancellation is no
/// exception of the user's and goes on.
Error error_thrown(const std::string& where);

}  // namespace paceline::actors
