#pragma once

#include <string>

#include "runtime/base/result.h"

namespace paceline::actors {

/// In a catch block: type and text of what was thrown, in one line.
std::string thrown();

/// The same as an error of kind `invalid`; a TaskError as itself, and as the cause of what it is nested in
/// (std::throw_with_nested). A thread's cancellation is no exception of the user's and goes on.
Error error_thrown();

}  // namespace paceline::actors
