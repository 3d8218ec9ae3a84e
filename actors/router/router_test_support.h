#pragma once

#include "runtime/base/ids.h"

namespace paceline::actors {

/// The node of the router that is tested, and another one.
inline constexpr NodeId kHere{0}, kThere{1};

}  // namespace paceline::actors
