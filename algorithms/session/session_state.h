#pragma once

#include <atomic>
#include <cstdint>

#include "runtime/memory/window.h"

namespace paceline::session {

/// What a worker is doing, as its agent and `status` see it (Window::Progress::state).
enum class State : std::uint32_t { compute = 0, wait = 1, averaging = 2, evaluate = 3, restore = 4, ended = 5 };

inline State state_of(const memory::Window& window) {
  return static_cast<State>(window.progress().state.load(std::memory_order_relaxed));
}

}  // namespace paceline::session
