#include "algorithms/cluster/worker_spans.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include "actors/spans/span_memory.h"
#include "runtime/wire/base64.h"

namespace paceline::cluster {
namespace {

using actors::SpanHeader;
using actors::SpanMemory;

/// Less where there is less.
std::string bytes_at(int fd, std::size_t offset, std::size_t size) {
  std::string bytes(size, '\0');
  const auto read = ::pread(fd, bytes.data(), size, static_cast<off_t>(offset));
  bytes.resize(read > 0 ? static_cast<std::size_t>(read) : 0);
  return bytes;
}

std::uint64_t number_in(const std::string& bytes, std::size_t offset, std::uint64_t most) {
  std::uint64_t number = 0;
  if (bytes.size() >= offset + sizeof number) std::memcpy(&number, bytes.data() + offset, sizeof number);
  return std::min(number, most);
}

/// Slots that no thread uses are all zero.
WorkerSpans::Copy copy_of(int fd, bool with_over) {
  auto head = bytes_at(fd, 0, offsetof(SpanMemory, names));
  const auto names = number_in(head, offsetof(SpanHeader, names), actors::kNamesBytes);
  const auto written = with_over ? number_in(head, offsetof(SpanHeader, written), actors::kSpansMax) : 0;
  head.erase(head.find_last_not_of('\0') + 1);
  return {wire::to_base64(head), wire::to_base64(bytes_at(fd, offsetof(SpanMemory, names), names)),
          wire::to_base64(bytes_at(fd, offsetof(SpanMemory, spans), written * actors::kRecordBytes))};
}

}  // namespace

void WorkerSpans::keep(WorkerId worker, pid_t pid, process::Fd fd) {
  if (::fcntl(fd.get(), F_GET_SEALS) < 0) return;
  Living& living = living_[worker];
  if (living.fd) return;
  living.label.pid = pid;
  living.fd = std::make_shared<const process::Fd>(std::move(fd));
}

void WorkerSpans::end(WorkerId worker, Instant now) {
  auto ended = living_.extract(worker);
  if (ended.empty() || !ended.mapped().fd) return;
  ended_.push_front({worker, std::move(ended.mapped().label), now, std::move(ended.mapped().fd)});
  if (ended_.size() > kEndedMax) ended_.pop_back();
}

WorkerSpans::Copy WorkerSpans::running(WorkerId worker) const {
  const auto found = living_.find(worker);
  return found == living_.end() || !found->second.fd ? Copy() : copy_of(found->second.fd->get(), false);
}

std::vector<WorkerSpans::Source> WorkerSpans::sources() const {
  std::vector<Source> sources;
  for (const auto& [worker, living] : living_)
    if (living.fd) sources.push_back({worker, living.label, {}, living.fd});
  sources.insert(sources.end(), ended_.begin(), ended_.end());
  return sources;
}

WorkerSpans::Copy WorkerSpans::copy(const Source& source) { return copy_of(source.fd->get(), true); }

}  // namespace paceline::cluster
