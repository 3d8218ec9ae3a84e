#pragma once

#include <string>

namespace paceline::process {

/// This machine, since it was started, and what numbers of processes mean here: two processes that say the same see
/// each other by these numbers.
std::string this_machine();

}  // namespace paceline::process
