#pragma once

#include <cstdint>
#include <string>

namespace paceline::explorer {

/// Numbers here are small; those that are not take more room.
inline void put(std::string& out, std::int64_t number) {
  if (number >= -60 && number < 120) {
    out.push_back(static_cast<char>(number));
    return;
  }
  out.push_back(127);
  for (int shift = 0; shift < 64; shift += 8) out.push_back(static_cast<char>(number >> shift));
}

}  // namespace paceline::explorer
