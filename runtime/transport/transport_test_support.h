#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/transport/transport.h"

namespace paceline::test {

/// A message of one frame.
inline std::vector<transport::Frame> message(std::string_view text) {
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  std::vector<transport::Frame> frames;
  frames.emplace_back(first, first + text.size());
  return frames;
}

/// As "message a hello": what happened, with whom, and the text of each frame.
inline std::string describe(const transport::Event& event) {
  static constexpr const char* kNames[] = {"message", "connected", "disconnected", "refused", "contested"};
  std::string text = std::string(kNames[static_cast<int>(event.kind)]) + " " + event.peer;
  for (const transport::Frame& frame : event.frames)
    text += " " + std::string(reinterpret_cast<const char*>(frame.data()), frame.size());
  return text;
}

}  // namespace paceline::test
