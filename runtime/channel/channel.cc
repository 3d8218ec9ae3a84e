#include "runtime/channel/channel.h"

#include <string>

namespace paceline::channel {

Result<void> Channel::check_bounds(std::span<const Frame> frames) {
  std::uint64_t bytes = 0;
  for (const Frame& frame : frames) bytes += frame.size();
  if (!frames.empty() && frames.size() <= kFramesMax && bytes <= kMessageBytesMax) return {};
  return fail(ErrorKind::invalid, "a message of " + std::to_string(frames.size()) + " frames and " +
                                      std::to_string(bytes) + " bytes: a channel takes 1 to " +
                                      std::to_string(kFramesMax) + " frames and at most " +
                                      std::to_string(kMessageBytesMax >> 20) + " MiB");
}

}  // namespace paceline::channel
