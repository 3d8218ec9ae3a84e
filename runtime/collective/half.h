#pragma once

#include <bit>
#include <cstdint>

// Conversions of the 16-bit types without branches, so that loops over them are vectorised. Round to nearest even; NaN
// stays NaN.

namespace paceline::collective {

[[gnu::always_inline]] inline float f32_from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

[[gnu::always_inline]] inline std::uint16_t bf16_from_f32(float value) {
  const std::uint32_t x = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (x + 0x7fffu + ((x >> 16) & 1u)) >> 16;
  const std::uint32_t quiet_nan = (x >> 16) | 0x40u;
  return static_cast<std::uint16_t>((x & 0x7fffffffu) > 0x7f800000u ? quiet_nan : rounded);
}

[[gnu::always_inline]] inline float f32_from_f16(std::uint16_t bits) {
  const std::uint32_t magnitude = static_cast<std::uint32_t>(bits & 0x7fffu) << 13;
  // Multiplying by 2^112 moves the exponent from f16's bias to f32's, subnormal numbers included.
  const std::uint32_t scaled = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112f);
  const std::uint32_t special = magnitude >= 0x0f800000u ? 0x7f800000u : 0u;  // Infinity and NaN.
  return std::bit_cast<float>(scaled | special | static_cast<std::uint32_t>(bits & 0x8000u) << 16);
}

[[gnu::always_inline]] inline std::uint16_t f16_from_f32(float value) {
  constexpr std::uint32_t kMagic = 126u << 23;  // 0.5: adding it leaves a subnormal result in the lowest bits, rounded.
  const std::uint32_t x = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (x >> 16) & 0x8000u;
  const std::uint32_t magnitude = x & 0x7fffffffu;
  const std::uint32_t normal =
      (magnitude + (static_cast<std::uint32_t>(15 - 127) << 23) + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  const std::uint32_t subnormal =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + std::bit_cast<float>(kMagic)) - kMagic;
  const std::uint32_t special = magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u;
  const std::uint32_t finite = magnitude < (113u << 23) ? subnormal : normal;
  return static_cast<std::uint16_t>(sign | (magnitude >= (143u << 23) ? special : finite));
}

}  // namespace paceline::collective
