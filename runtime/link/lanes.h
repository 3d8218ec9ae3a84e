#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace paceline::link {

/// What a message is, from what must never wait to what may wait longest. Order is kept within a class.
enum class Class : std::uint8_t { control, answers, requests };
inline constexpr std::size_t kClasses = 3;

/// Each class has two lanes, numbered from 0 each: its messages, and the bulk of its messages, in chunks.
inline constexpr std::size_t kLanes = 2 * kClasses;
inline constexpr std::size_t head_lane(Class c) { return static_cast<std::size_t>(c); }
inline constexpr std::size_t bulk_lane(Class c) { return kClasses + static_cast<std::size_t>(c); }

template <class T>
using PerLane = std::array<T, kLanes>;
template <class T>
using PerClass = std::array<T, kClasses>;

/// More frames in one message are no message of ours.
inline constexpr std::size_t kFramesMax = 62;
/// Messages of this size and more are acknowledged without delay and count against the sender's window, as bulk does.
inline constexpr std::uint64_t kLargeBytes = std::uint64_t{16} << 10;
/// What a unit counts against its lane's credit, beside its bytes: what it takes of memory whatever it holds.
inline constexpr std::uint64_t kUnitBytes = 256;

}  // namespace paceline::link
