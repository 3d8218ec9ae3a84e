#pragma once

#include <chrono>
#include <string>

namespace paceline::observe {

/// printf into a string of whatever length it takes.
std::string format(const char* pattern, ...) __attribute__((format(printf, 1, 2)));
/// "300 KiB", "1.5 GiB".
std::string memory_text(double bytes);
/// "2026-11-21T17:50:15Z".
std::string utc_text(std::chrono::system_clock::time_point at);

}  // namespace paceline::observe
