#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/recorded/scalars.h"

namespace paceline::cli {

/// The content of a file of events that TensorBoard reads ("events.out.tfevents.*"): records of protocol buffers
/// (Event, Summary), each with its length and check sums. `began`: wall time, in seconds since 1970, at which the
/// training clock was 0.
std::string tensorboard_events(const std::vector<recorded::Scalar>& scalars, double began);

/// "loss", "entropy/worker-3".
std::string tag_of(const recorded::Scalar& scalar);

/// CRC-32C (Castagnoli), as iSCSI has it.
std::uint32_t crc32c(std::string_view bytes);

}  // namespace paceline::cli
