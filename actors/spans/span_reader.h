#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "actors/spans/span_memory.h"
#include "runtime/base/ids.h"

namespace paceline::actors {

struct SpanName {
  NameKind kind = NameKind::text;
  std::string text{};  ///< Any bytes. Empty: unknown.
  auto operator<=>(const SpanName&) const = default;
};

/// A call that a worker runs, or has run.
struct Span {
  std::uint64_t sequence = 0;  ///< Of those that are over.
  TaskId task{};
  std::int64_t began_ns = 0;
  std::int64_t ended_ns = 0;  ///< 0: it runs.
  SpanName name{};
  std::string owner{};
  std::uint32_t thread = 0;
  bool failed = false;
  bool coroutine = false;
};

struct ReadSpans {
  std::vector<Span> running;  ///< By thread.
  std::vector<Span> over;     ///< The newest, in the order of their ends.
  std::uint64_t lost = 0;     ///< Older ones, which are not there any more.
};

/// What can be made of the bytes of a SpanMemory, which may end anywhere, and change while they are copied: what is not
/// right, or not there, is left out. Pure.
ReadSpans read_spans(std::span<const std::byte> bytes);

}  // namespace paceline::actors
