#include "runtime/channel/channel.h"

#include <cstdlib>
#include <string>
#include <string_view>

namespace paceline::channel {

bool shares_memory() {
  const char* const way = std::getenv("PACELINE_CHANNELS");
  return way == nullptr || std::string_view(way) != "zmq";
}

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
