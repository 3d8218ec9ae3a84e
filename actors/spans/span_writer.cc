#include "actors/spans/span_writer.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <tuple>

#include "actors/protocol.h"
#include "runtime/base/readable.h"
#include "runtime/base/splitmix.h"
#include "runtime/store/shared_memory.h"

namespace paceline::actors {
namespace {

std::uint64_t hash_of(std::string_view bytes, std::uint64_t kind) {
  return splitmix(std::hash<std::string_view>()(bytes) ^ kind) | 1;  // 0: nothing is known.
}

/// Whole for who reads later: one that reads meanwhile finds a wrong `check`.
void put(SpanSlot& slot, const SpanRecord& record) {
  const auto words = std::bit_cast<std::array<std::uint64_t, std::tuple_size_v<SpanSlot>>>(record);
  for (std::size_t i = 0; i < words.size(); ++i) slot[i].store(words[i], std::memory_order_relaxed);
}

}  // namespace

Result<std::unique_ptr<SpanBook>> SpanBook::create() {
  auto fd = store::create_memory({.name = "paceline-spans", .size = kSpanMemoryBytes});
  if (!fd) return tl::unexpected(fd.error());
  auto mapping = store::Mapping::map(*fd, kSpanMemoryBytes, store::Mapping::Access::write, "spans");
  if (!mapping) return tl::unexpected(mapping.error());
  std::unique_ptr<SpanBook> book(new SpanBook(*std::move(fd), *std::move(mapping)));
  book->memory_->header.names = alignof(NameHead);  // Id 0 is no name's.
  book->memory_->header.magic = kSpanMagic;
  return book;
}

std::uint32_t SpanBook::name(NameKind kind, std::string_view text, std::size_t room) {
  text = first_of(text, kNameMax);
  std::string key = std::to_string(static_cast<int>(kind));
  key += text;
  std::lock_guard lock(mutex_);
  if (const auto found = known_.find(key); found != known_.end()) return found->second;
  const std::uint64_t begin = memory_->header.names.load(std::memory_order_relaxed);
  const std::uint64_t end = (begin + sizeof(NameHead) + text.size() + alignof(std::uint64_t) - 1) /
                            alignof(std::uint64_t) * alignof(std::uint64_t);
  if (end > room) return 0;
  const NameHead head{kind, static_cast<std::uint32_t>(text.size())};
  std::memcpy(memory_->names.data() + begin, &head, sizeof head);
  std::memcpy(memory_->names.data() + begin + sizeof head, text.data(), text.size());
  memory_->header.names.store(end, std::memory_order_release);
  const auto id = static_cast<std::uint32_t>(begin);
  known_.emplace(std::move(key), id);
  return id;
}

SpanTrack::SpanTrack(SpanBook& book)
    : book_(book),
      thread_(book.tracks_.fetch_add(1, std::memory_order_relaxed)),
      slot_(thread_ < kRunningMax ? &book.memory_->running[thread_] : nullptr) {}

std::uint32_t SpanTrack::text(std::string_view text, std::size_t room) {
  const auto hash = hash_of(text, 0);
  Known* const found = known(hash);
  if (found->hash != hash) *found = {hash, book_.name(NameKind::text, text, room)};
  return found->name;
}

void SpanTrack::begin(const Call& call, Instant now) {
  now_ = {};
  now_.sequence = ++begun_;
  now_.task = call.task.value;
  now_.began_ns = now.time_since_epoch().count();
  now_.owner = text(call.owner);
  now_.thread = thread_;
  if (!call.name.empty()) now_.name = text(call.name, kTaskNamesBytes);
  if (now_.name != 0) show();  // Else begins() follows.
}

void SpanTrack::begin(std::string_view name, const std::string& owner, Instant now) {
  now_ = {};
  now_.sequence = ++begun_;
  now_.began_ns = now.time_since_epoch().count();
  now_.name = text(name);
  now_.owner = text(owner);
  now_.thread = thread_;
  show();
}

void SpanTrack::begins(const CalleeKind& kind, const Bytes& first, std::string_view build) {
  if (now_.name != 0) return;
  const std::string_view which =
      kind.by_first ? std::string_view(reinterpret_cast<const char*>(first.data()), first.size()) : "";
  const auto hash = hash_of(which, reinterpret_cast<std::uintptr_t>(&kind));
  Known* const found = known(hash);
  if (found->hash != hash) {
    const auto callee = kind.callee(first, build);
    *found = {hash, callee.text.empty() ? 0 : book_.name(callee.kind, callee.text)};
  }
  now_.name = found->name;
  show();
}

void SpanTrack::show() {
  if (slot_ == nullptr) return;
  now_.check = now_.checked();
  put(*slot_, now_);
}

SpanRecord SpanTrack::leave() {
  auto span = take();
  span.flags |= SpanRecord::kCoroutine;
  return span;
}

SpanRecord SpanTrack::take() {
  if (slot_ != nullptr) slot_->back().store(0, std::memory_order_relaxed);
  return std::exchange(now_, {});
}

void SpanTrack::end(SpanRecord span, Instant now, bool failed) {
  if (span.began_ns == 0) return;
  const auto index = book_.memory_->header.written.fetch_add(1, std::memory_order_relaxed);
  span.sequence = index + 1;
  span.ended_ns = std::max(now.time_since_epoch().count(), span.began_ns);
  span.flags |= failed ? SpanRecord::kFailed : 0;
  span.check = span.checked();
  put(book_.memory_->spans[index % kSpansMax], span);
}

}  // namespace paceline::actors
