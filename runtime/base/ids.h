#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <string>

namespace paceline {

/// An integer that cannot be mixed up with another one: Rank{3} is no Version{3}.
template <class Tag, class Rep = std::int64_t>
struct StrongId {
  Rep value{};

  constexpr StrongId() = default;
  constexpr explicit StrongId(Rep v) : value(v) {}
  constexpr auto operator<=>(const StrongId&) const = default;
  constexpr StrongId next() const { return StrongId(static_cast<Rep>(value + 1)); }
};

template <class Tag, class Rep>
std::string to_string(StrongId<Tag, Rep> id) {
  return std::to_string(id.value);
}

/// A host's agent; 0 is the one beside the head. Dense: 0..nodes-1.
using NodeId = StrongId<struct NodeTag, std::int32_t>;
/// A worker's place in a job, dense 0..P-1; the mathematics' index i.
using Rank = StrongId<struct RankTag, std::int32_t>;
/// Iteration number of a round, the mathematics' t. -1: before the first.
using Version = StrongId<struct VersionTag>;
/// A process that runs actors and tasks; unique in a cluster: node in the upper 32 bits, a counter in the lower.
using WorkerId = StrongId<struct WorkerTag, std::uint64_t>;
using JobId = StrongId<struct JobTag, std::uint64_t>;
/// Unique in a cluster, as a TaskId is: node, process that made it, a counter (actors/process_ids.h).
using ActorId = StrongId<struct ActorTag, std::uint64_t>;
/// A call or a task; unique in a cluster: the process that made it, a counter; top bit set: an averaging of a job.
using TaskId = StrongId<struct TaskTag, std::uint64_t>;

}  // namespace paceline

template <class Tag, class Rep>
struct std::hash<paceline::StrongId<Tag, Rep>> {
  std::size_t operator()(paceline::StrongId<Tag, Rep> id) const noexcept { return std::hash<Rep>{}(id.value); }
};
