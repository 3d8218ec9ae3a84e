#include "algorithms/cluster/worker_output.h"

#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>

#include "runtime/base/steady_now.h"

namespace paceline::cluster {
namespace {

constexpr std::size_t kChunk = std::size_t{64} << 10;
constexpr std::size_t kBatchBytes = std::size_t{64} << 10;
constexpr std::size_t kPartBytes = 128;  // That a part counts for besides its text.

}  // namespace

WorkerOutput::~WorkerOutput() {
  if (inotify_) loop_.forget(inotify_.get());
}

void WorkerOutput::watch(Source source) {
  Stream stream{std::move(source), {}, OutputLines(0)};
  stream.lines = OutputLines(stream.source.begin);
  stream.file.reset(::open(stream.source.log.c_str(), O_RDONLY | O_CLOEXEC));
  if (!stream.file) return complain("open " + stream.source.log + ": " + std::strerror(errno));
  const auto worker = stream.source.worker;
  queue(streams_.insert_or_assign(worker, std::move(stream)).first->second);
}

void WorkerOutput::complain(const std::string& text) {
  if (!std::exchange(complained_, true)) log_.warning("what workers print is shown late or not at all: " + text);
}

/// The kernel tells of the next change only, so that a worker that prints a lot wakes nobody for each line.
void WorkerOutput::arm(Stream& stream) {
  if (stream.watch >= 0 || stream.ended) return;
  if (!inotify_) {
    inotify_.reset(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
    if (!inotify_) return complain(std::string("inotify_init1: ") + std::strerror(errno));
    if (const auto watched = loop_.watch(inotify_.get(), [this] { on_events(); }); !watched)
      return complain(watched.error().text);
  }
  const auto path = "/proc/self/fd/" + std::to_string(stream.file.get());  // Wherever it has been moved to.
  stream.watch = ::inotify_add_watch(inotify_.get(), path.c_str(), IN_MODIFY | IN_ONESHOT);
  if (stream.watch < 0) return complain(std::string("inotify_add_watch: ") + std::strerror(errno));
  watches_[stream.watch] = stream.source.worker;
}

void WorkerOutput::disarm(Stream& stream) {
  if (stream.watch < 0) return;
  watches_.erase(stream.watch);
  (void)::inotify_rm_watch(inotify_.get(), stream.watch);
  stream.watch = -1;
}

void WorkerOutput::on_events() {
  alignas(inotify_event) std::array<char, 16 << 10> buffer;
  for (;;) {
    const ssize_t got = ::read(inotify_.get(), buffer.data(), buffer.size());
    if (got <= 0) return;
    for (std::size_t at = 0; at < static_cast<std::size_t>(got);) {
      inotify_event event{};
      std::memcpy(&event, buffer.data() + at, sizeof event);
      at += sizeof event + event.len;
      if ((event.mask & IN_Q_OVERFLOW) != 0)
        for (auto& [worker, stream] : streams_) queue(stream);
      const auto known = watches_.extract(event.wd);
      if (known.empty()) continue;
      const auto stream = streams_.find(known.mapped());
      if (stream == streams_.end()) continue;
      stream->second.watch = -1;
      queue(stream->second);
    }
  }
}

void WorkerOutput::queue(Stream& stream, bool at_once) {
  State& state = readers_[stream.source.reader];
  if (at_once) state.due = {};
  if (!std::exchange(stream.queued, true)) state.queue.push_back(stream.source.worker);
}

void WorkerOutput::on_ended(WorkerId worker) {
  const auto stream = streams_.find(worker);
  if (stream == streams_.end()) return;
  disarm(stream->second);
  stream->second.ended = true;
  struct stat status {};
  if (::fstat(stream->second.file.get(), &status) == 0) stream->second.end = status.st_size;
  queue(stream->second, true);
  State& state = readers_[stream->second.source.reader];
  state.ended.push_back(worker);
  if (state.ended.size() <= kEndedMax) return;
  const auto oldest = streams_.find(state.ended.front());
  state.ended.pop_front();
  answer(oldest->second, state);
  streams_.erase(oldest);
}

/// What is wanted of it is sent, or will not be.
void WorkerOutput::answer(Stream& stream, State& state) {
  if (std::exchange(stream.all_wanted, false) && state.answers_left > 0) --state.answers_left;
}

void WorkerOutput::on_shown(const Reader& reader, std::size_t bytes) {
  const auto state = readers_.find(reader);
  if (state != readers_.end()) state->second.under_way -= std::min(state->second.under_way, bytes);
}

void WorkerOutput::on_all_wanted(const Reader& reader) {
  State& state = readers_[reader];
  state.all_wanted = true;
  state.answers_left = 0;
  state.due = {};
  for (auto& [worker, stream] : streams_) {
    if (stream.source.reader != reader) continue;
    stream.all_wanted = true;
    stream.all_until.reset();
    ++state.answers_left;
    queue(stream, true);
  }
}

void WorkerOutput::forget(const Reader& reader) {
  for (auto it = streams_.begin(); it != streams_.end();) {
    const bool its = it->second.source.reader == reader;
    if (its) disarm(it->second);
    it = its ? streams_.erase(it) : std::next(it);
  }
  readers_.erase(reader);
  held_.erase(reader);
}

void WorkerOutput::hold_node(NodeId node, Instant until) {
  for (const auto& [reader, state] : readers_)
    if (reader.node == node) held_[reader] = until;
}

void WorkerOutput::move(const std::string& driver, NodeId to) {
  std::erase_if(held_, [&](const auto& one) { return one.first.driver == driver; });
  for (auto& [worker, stream] : streams_) {
    if (stream.source.reader.driver != driver || stream.source.reader.node == to) continue;
    stream.source.reader.node = to;
    stream.all_wanted = stream.queued = false;  // It asks again.
    queue(stream, true);
    if (stream.ended) readers_[stream.source.reader].ended.push_back(worker);
  }
  std::erase_if(readers_, [&](const auto& one) { return one.first.driver == driver && one.first.node != to; });
}

bool WorkerOutput::may_send(const Reader& reader, const State& state) const {
  return (!state.queue.empty() || state.all_wanted) && state.under_way < kUnderWayMax && !held_.contains(reader);
}

void WorkerOutput::tick(Instant now) {
  for (const auto& [reader, until] : std::map(held_))
    if (until <= now) forget(reader);
  for (auto& [reader, state] : readers_)
    if (may_send(reader, state) && state.due <= now) serve(reader, state, now);
}

std::optional<Instant> WorkerOutput::next_deadline() const {
  std::optional<Instant> next;
  for (const auto& [reader, state] : readers_)
    if (may_send(reader, state)) next = earlier(next, state.due);
  for (const auto& [reader, until] : held_) next = earlier(next, until);
  return next;
}

/// Workers take turns, a chunk each.
void WorkerOutput::serve(const Reader& reader, State& state, Instant now) {
  Batch batch;
  std::size_t taken = 0;
  while (!state.queue.empty() && taken < kTurnBytes) {
    const std::size_t used = state.under_way + batch.bytes;
    if (used >= kUnderWayMax) break;
    const auto found = streams_.find(state.queue.front());
    state.queue.pop_front();
    if (found == streams_.end()) continue;
    Stream& stream = found->second;
    stream.queued = false;
    arm(stream);
    taken += read(stream, kUnderWayMax - used);
    const bool is_read_now = is_read(stream, state);
    for (auto& part : stream.lines.take_parts()) {
      batch.bytes += part.lines.size() + stream.source.who.size() + stream.source.log.size() + kPartBytes;
      batch.parts.push_back({stream.source.who, stream.source.log, std::move(part)});
    }
    if (batch.bytes >= kBatchBytes) send(reader, state, std::exchange(batch, {}));
    if (!is_read_now) {
      queue(stream);
    } else if (stream.ended) {
      std::erase(state.ended, found->first);
      streams_.erase(found);
    }
  }
  batch.all = state.all_wanted && state.answers_left == 0;
  if (batch.all) state.all_wanted = false;
  if (!batch.parts.empty() || batch.all) send(reader, state, std::move(batch));
  // Who has more has its next turn as soon as the others of this thread have had theirs.
  state.due = state.queue.empty() ? now + kPace : now;
}

/// Returns how many bytes.
std::size_t WorkerOutput::read(Stream& stream, std::size_t room) {
  struct stat status {};
  if (::fstat(stream.file.get(), &status) != 0) return 0;
  const auto size = std::min<std::int64_t>(status.st_size, stream.end);
  const bool begins_to_end = stream.all_wanted && !stream.all_until;
  stream.lines.on_size(size, begins_to_end);
  if (begins_to_end) stream.all_until = size;
  std::array<char, kChunk> buffer;
  auto wanted = std::min<std::size_t>(buffer.size(), static_cast<std::size_t>(stream.lines.unread()));
  if (!stream.lines.leaves_out()) wanted = std::min(wanted, room);
  if (wanted == 0) return 0;
  const ssize_t got = ::pread(stream.file.get(), buffer.data(), wanted, stream.lines.position());
  if (got <= 0) {
    stream.lines.on_size(stream.lines.position());  // Cut off, or damaged: there is nothing to wait for.
    return 0;
  }
  stream.lines.take({buffer.data(), static_cast<std::size_t>(got)});
  return static_cast<std::size_t>(got);
}

/// Whether all is read that there was, as far as this worker's end, or its driver's, asks for it.
bool WorkerOutput::is_read(Stream& stream, State& state) {
  const bool is_read = stream.lines.unread() <= 0;
  if (is_read && stream.ended) stream.lines.end_line();
  if (stream.all_wanted && stream.all_until && (is_read || stream.lines.position() >= *stream.all_until)) {
    stream.lines.end_line();
    answer(stream, state);
  }
  return is_read;
}

void WorkerOutput::send(const Reader& reader, State& state, Batch batch) {
  state.under_way += batch.bytes;
  send_(reader, std::move(batch));
}

}  // namespace paceline::cluster
