#pragma once

#include <string>

#include "actors/output_message.h"

namespace paceline::actors {

/// As it stands on the driver's terminal: before each line who has printed it, in colour if so wanted, and what was
/// left out is counted in a line of its own. Bytes of lines are as they were printed.
std::string shown(const Output::Part& part, bool colour);
std::string shown(const Output& output, bool colour);

/// Whether it is to be in colour there: on a terminal that is not "dumb", unless NO_COLOR is set.
bool wants_colour(int descriptor);

}  // namespace paceline::actors
