#pragma once

#include <cstdint>

#include "runtime/base/ids.h"

namespace paceline {

// A job goes in legs, each with a strategy and nodes of its own (docs/adr/0050-a-job-goes-in-legs.md). Where agents and
// sessions speak of its training they name the leg with it, above the job's own number: what is said of another leg
// comes too late, or too early.

inline constexpr int kLegShift = 48;
inline constexpr std::int32_t kLegsMax = 255;

/// `job`: without a leg, which is its first.
constexpr JobId in_leg(JobId job, std::int32_t leg) {
  return JobId{job.value | static_cast<std::uint64_t>(leg) << kLegShift};
}
constexpr std::int32_t leg_of(JobId named) { return static_cast<std::int32_t>(named.value >> kLegShift); }
constexpr JobId without_leg(JobId named) { return JobId{named.value & ((std::uint64_t{1} << kLegShift) - 1)}; }

}  // namespace paceline
