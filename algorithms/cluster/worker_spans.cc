#include "algorithms/cluster/worker_spans.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include "actors/spans/span_memory.h"
#include "runtime/store/shared_memory.h"
#include "runtime/wire/base64.h"

namespace paceline::cluster {
namespace {

using actors::SpanHeader;
using actors::SpanMemory;

/// The worker may write meanwhile: who reads the copy finds that out.
std::string bytes_at(const std::byte* memory, std::size_t offset, std::size_t size) {
  return {reinterpret_cast<const char*>(memory) + offset, size};
}

std::uint64_t number_in(const std::string& bytes, std::size_t offset, std::uint64_t most) {
  std::uint64_t number = 0;
  std::memcpy(&number, bytes.data() + offset, sizeof number);
  return std::min(number, most);
}

/// Slots that no thread uses are all zero.
WorkerSpans::Copy copy_of(const std::byte* memory, bool with_over) {
  auto head = bytes_at(memory, 0, offsetof(SpanMemory, names));
  const auto names = number_in(head, offsetof(SpanHeader, names), actors::kNamesBytes);
  const auto written = with_over ? number_in(head, offsetof(SpanHeader, written), actors::kSpansMax) : 0;
  head.erase(head.find_last_not_of('\0') + 1);
  return {wire::to_base64(head), wire::to_base64(bytes_at(memory, offsetof(SpanMemory, names), names)),
          wire::to_base64(bytes_at(memory, offsetof(SpanMemory, spans), written * actors::kRecordBytes))};
}

}  // namespace

void WorkerSpans::keep(WorkerId worker, pid_t pid, process::Fd fd) {
  if (!store::check_memory(fd, actors::kSpanMemoryBytes, "shared object")) return;
  Living& living = living_[worker];
  if (living.memory) return;
  auto mapping = store::Mapping::map(fd, actors::kSpanMemoryBytes, store::Mapping::Access::read, "spans");
  if (!mapping) return;
  living.label.pid = pid;
  living.memory = std::make_shared<const store::Mapping>(*std::move(mapping));
}

void WorkerSpans::end(WorkerId worker, Instant now) {
  auto ended = living_.extract(worker);
  if (ended.empty() || !ended.mapped().memory) return;
  ended_.push_front({worker, std::move(ended.mapped().label), now, std::move(ended.mapped().memory)});
  if (ended_.size() > kEndedMax) ended_.pop_back();
}

WorkerSpans::Copy WorkerSpans::running(WorkerId worker) const {
  const auto found = living_.find(worker);
  return found == living_.end() || !found->second.memory ? Copy() : copy_of(found->second.memory->data(), false);
}

std::vector<WorkerSpans::Source> WorkerSpans::sources() const {
  std::vector<Source> sources;
  for (const auto& [worker, living] : living_)
    if (living.memory) sources.push_back({worker, living.label, {}, living.memory});
  sources.insert(sources.end(), ended_.begin(), ended_.end());
  return sources;
}

WorkerSpans::Copy WorkerSpans::copy(const Source& source) { return copy_of(source.memory->data(), true); }

}  // namespace paceline::cluster
