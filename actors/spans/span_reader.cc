#include "actors/spans/span_reader.h"

#include <algorithm>
#include <cstring>
#include <optional>

namespace paceline::actors {
namespace {

using ByteSpan = std::span<const std::byte>;

template <class T>
std::optional<T> at(ByteSpan bytes, std::size_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

ByteSpan part(ByteSpan bytes, std::size_t offset, std::size_t size) {
  if (offset >= bytes.size()) return {};
  return bytes.subspan(offset, std::min(size, bytes.size() - offset));
}

SpanName name_at(ByteSpan names, std::uint32_t id) {
  const auto head = id == 0 || id % alignof(NameHead) != 0 ? std::nullopt : at<NameHead>(names, id);
  const std::size_t begin = id + sizeof(NameHead);
  if (!head || head->bytes > kNameMax || begin > names.size() || names.size() - begin < head->bytes) return {};
  if (head->kind < NameKind::text || head->kind > NameKind::function) return {};
  return {head->kind, {reinterpret_cast<const char*>(names.data() + begin), head->bytes}};
}

std::optional<Span> span_at(ByteSpan records, std::size_t index, ByteSpan names) {
  const auto record = at<SpanRecord>(records, index * kRecordBytes);
  if (!record || record->sequence == 0 || record->check != record->checked() || record->began_ns < 0) return {};
  if (record->ended_ns != 0 && record->ended_ns < record->began_ns) return {};
  auto owner = name_at(names, record->owner);
  return Span{record->sequence,
              TaskId{record->task},
              record->began_ns,
              record->ended_ns,
              name_at(names, record->name),
              owner.kind == NameKind::text ? std::move(owner.text) : std::string(),
              record->thread,
              (record->flags & SpanRecord::kFailed) != 0,
              (record->flags & SpanRecord::kCoroutine) != 0};
}

}  // namespace

ReadSpans read_spans(ByteSpan bytes) {
  ReadSpans read;
  const auto magic = at<std::uint64_t>(bytes, offsetof(SpanHeader, magic));
  const auto written = at<std::uint64_t>(bytes, offsetof(SpanHeader, written));
  const auto used = at<std::uint64_t>(bytes, offsetof(SpanHeader, names));
  if (!magic || !written || !used || *magic != kSpanMagic) return read;
  const auto names = part(bytes, offsetof(SpanMemory, names), std::min<std::uint64_t>(*used, kNamesBytes));
  const auto running = part(bytes, offsetof(SpanMemory, running), sizeof(SpanMemory::running));
  for (std::size_t i = 0; i < kRunningMax; ++i) {
    auto span = span_at(running, i, names);
    if (span && span->ended_ns == 0) read.running.push_back(*std::move(span));
  }
  const auto over = part(bytes, offsetof(SpanMemory, spans), sizeof(SpanMemory::spans));
  for (std::size_t i = 0; i < kSpansMax; ++i) {
    auto span = span_at(over, i, names);
    if (span && span->ended_ns != 0 && (span->sequence - 1) % kSpansMax == i) read.over.push_back(*std::move(span));
  }
  std::sort(read.over.begin(), read.over.end(),
            [](const Span& one, const Span& other) { return one.sequence < other.sequence; });
  read.lost = *written > kSpansMax ? *written - kSpansMax : 0;
  return read;
}

}  // namespace paceline::actors
