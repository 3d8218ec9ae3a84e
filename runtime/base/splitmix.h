#pragma once

#include <cstdint>

namespace paceline {

// Random numbers that are a function of what they are for, not of how many were drawn before: the same on every
// machine, in any order, without a message.

/// One step of the splitmix64 generator (Sebastiano Vigna, public domain): mixes `state`, bijectively.
constexpr std::uint64_t splitmix(std::uint64_t state) {
  state += 0x9e3779b97f4a7c15;
  state = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9;
  state = (state ^ (state >> 27)) * 0x94d049bb133111eb;
  return state ^ (state >> 31);
}

/// 64 bits for `item` at `step`: splitmix(splitmix(splitmix(seed) ^ step) ^ item).
constexpr std::uint64_t draw_bits(std::uint64_t seed, std::int64_t step, std::int64_t item) {
  const std::uint64_t of_step = splitmix(splitmix(seed) ^ static_cast<std::uint64_t>(step));
  return splitmix(of_step ^ static_cast<std::uint64_t>(item));
}

/// In [0, 1): the upper 53 bits of draw_bits() times 2^-53.
constexpr double draw_uniform(std::uint64_t seed, std::int64_t step, std::int64_t item) {
  return static_cast<double>(draw_bits(seed, step, item) >> 11) * 0x1p-53;
}

}  // namespace paceline
