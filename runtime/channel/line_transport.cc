#include "runtime/channel/line_transport.h"

#include <poll.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "runtime/base/steady_now.h"

namespace paceline::channel {
namespace {

using transport::Event;
using transport::Peer;

constexpr std::string_view kIpc = "ipc://";
constexpr std::uint64_t kMarkMagic = 0xffff'ffff'6b72'616d;  // No envelope begins so: it would have 2^32 segments.
constexpr std::size_t kTurn = 32;                            // Messages from below before lines have their turn.

/// Says how many messages went the other way before those that follow on this one.
Message mark(std::uint64_t count) {
  Message message(1, Frame(2 * sizeof count));
  std::memcpy(message[0].data(), &kMarkMagic, sizeof kMarkMagic);
  std::memcpy(message[0].data() + sizeof count, &count, sizeof count);
  return message;
}

std::optional<std::uint64_t> marked(const Message& message) {
  if (message.size() != 1 || message[0].size() != 2 * sizeof kMarkMagic ||
      std::memcmp(message[0].data(), &kMarkMagic, sizeof kMarkMagic) != 0)
    return std::nullopt;
  std::uint64_t count = 0;
  std::memcpy(&count, message[0].data() + sizeof count, sizeof count);
  return count;
}

std::size_t size_of(const Message& message) {
  std::size_t bytes = 0;
  for (const Frame& frame : message) bytes += frame.size();
  return bytes;
}

std::string line_path(const std::string& address) { return address.substr(kIpc.size()) + ".line"; }

}  // namespace

Result<std::unique_ptr<transport::Transport>> LineTransport::beside(std::unique_ptr<transport::Transport> below,
                                                                    const std::string& self) {
  if (!shares_memory()) return below;
  auto loop = EventLoop::create();
  if (!loop) return tl::unexpected(loop.error());
  std::unique_ptr<LineTransport> made(new LineTransport(std::move(below), *std::move(loop)));
  PACELINE_TRY(made->open(self));
  return made;
}

Result<void> LineTransport::open(const std::string& self) {
  auto lines = Lines::create(
      self, {.called = [this](const Peer& peer, Message message) { on_line(peer, false, std::move(message)); },
             .answered = [this](const Peer& peer, Message message) { on_line(peer, true, std::move(message)); },
             .ended = [this](const Peer& peer, std::size_t) { on_line_ended(peer); },
             .left = [this](const Peer& peer) { on_line_ended(peer); }});
  if (!lines) return tl::unexpected(lines.error());
  lines_ = *std::move(lines);
  PACELINE_TRY(loop_.watch(below_->descriptor(), [] {}));
  return loop_.watch(lines_->descriptor(), [] {});
}

/// Lines::kInMax lines take three each.
std::size_t LineTransport::listener_descriptors() {
  rlimit limit{};
  const bool has_many = ::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_max >= kDescriptorsMin;
  return shares_memory() && has_many ? 3 * Lines::kInMax + 1 : 0;
}

Result<std::string> LineTransport::listen(const std::string& address) {
  auto real = below_->listen(address);
  if (real && real->starts_with(kIpc) && listener_descriptors() > 0)
    (void)lines_->listen(line_path(*real));  // Else all below.
  return real;
}

Result<void> LineTransport::connect(const Peer& peer, const std::string& address) {
  PACELINE_TRY(below_->connect(peer, address));
  Way& way = ways_[peer] = {};
  way.is_ours = true;
  // Its other end answers this mark; until then it may be nobody's.
  if (address.starts_with(kIpc) && lines_->connect(peer, line_path(address))) (void)lines_->send_out(peer, mark(0));
  return {};
}

void LineTransport::disconnect(const Peer& peer) {
  below_->disconnect(peer);
  lines_->drop(peer);
  ways_.erase(peer);
}

Result<void> LineTransport::send(const Peer& peer, std::vector<Frame>&& frames) {
  const auto found = ways_.find(peer);
  if (found == ways_.end()) return below_->send(peer, std::move(frames));
  Way& way = found->second;
  if (way.has_line && size_of(frames) <= Lines::kMessageMax) {
    const auto is_full = [&] { return fail(ErrorKind::overloaded, peer + " does not keep up: retry later"); };
    if (!way.sends_by_line && way.sent_below > 0 && !send_line(peer, way, mark(way.sent_below))) return is_full();
    way.sends_by_line = true;
    if (!send_line(peer, way, frames)) return is_full();
    ++way.by_line.sent;
    return {};
  }
  if (way.sends_by_line) {
    PACELINE_TRY(below_->send(peer, mark(way.by_line.sent)));
    way.sends_by_line = false;
  }
  PACELINE_TRY(below_->send(peer, std::move(frames)));
  ++way.sent_below;
  return {};
}

bool LineTransport::send_line(const Peer& peer, const Way& way, const Message& message) {
  return way.is_ours ? lines_->send_out(peer, message) : lines_->send_in(peer, message);
}

std::optional<Event> LineTransport::poll(Duration timeout) {
  const Instant until = timeout > Duration::zero() ? steady_now() + timeout : Instant{};
  while (true) {
    if (events_.empty()) {
      lines_->serve();
      for (std::size_t i = 0; i < kTurn; ++i) {
        auto event = below_->poll(Duration::zero());
        if (!event) break;
        take_in(*std::move(event));
      }
    }
    if (!events_.empty()) {
      Event event = std::move(events_.front());
      events_.pop_front();
      return event;
    }
    if (timeout <= Duration::zero()) return std::nullopt;
    const Duration left = until - steady_now();
    if (left <= Duration::zero()) return std::nullopt;
    pollfd wait{descriptor(), POLLIN, 0};
    ::poll(&wait, 1, static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(left).count()));
  }
}

void LineTransport::on_line(const Peer& peer, bool is_ours, Message message) {
  Way& way = ways_[peer];  // A line may be here before its connection.
  if (way.is_ours != is_ours) return;
  if (const auto count = marked(message)) {
    way.line_is_behind = std::max(way.line_is_behind, *count);
    if (!std::exchange(way.has_line, true) && !is_ours) way.has_line = lines_->send_in(peer, mark(0));
    return;
  }
  way.held_bytes += size_of(message);
  way.held.push_back({std::move(message), way.line_is_behind});
  let_go_on(peer, way);
  if (way.held_bytes > kHeldBytesMax) give_up(peer);
}

/// Whose process has ended, which is told below, too.
void LineTransport::on_line_ended(const Peer& peer) {
  const auto found = ways_.find(peer);
  if (found == ways_.end()) return;
  found->second.has_line = false;
  if (!found->second.is_connected && !found->second.is_ours) ways_.erase(found);  // It never had one.
}

void LineTransport::take_in(Event event) {
  if (event.kind == Event::Kind::disconnected) return on_gone(std::move(event));
  if (event.kind == Event::Kind::connected) {
    const Peer peer = event.peer;
    events_.push_back(std::move(event));
    Way& way = ways_[peer];
    way.is_connected = true;
    return let_go_on(peer, way);
  }
  const auto found = ways_.find(event.peer);
  if (event.kind != Event::Kind::message || found == ways_.end()) return events_.push_back(std::move(event));
  if (const auto count = marked(event.frames)) {
    if (!hear_line(event.peer, *count)) give_up(event.peer);
    return;
  }
  const Peer peer = event.peer;
  events_.push_back(std::move(event));
  ++found->second.come_below;
  let_go_on(peer, found->second);
}

void LineTransport::on_gone(Event event) {
  const Peer peer = event.peer;
  (void)hear_line(peer, UINT64_MAX);
  lines_->drop(peer);
  ways_.erase(peer);
  events_.push_back(std::move(event));
}

/// Whether so many messages have come by the line: they lie in it already.
bool LineTransport::hear_line(const Peer& peer, std::uint64_t until) {
  while (true) {
    const auto found = ways_.find(peer);
    if (found == ways_.end()) return false;
    const Counts before = found->second.by_line;
    if (before.come >= until) return true;
    lines_->hear_out(peer);
    const auto after = ways_.find(peer);
    if (after == ways_.end() || after->second.by_line.come == before.come) return false;
  }
}

void LineTransport::let_go_on(const Peer& peer, Way& way) {
  if (!way.is_connected) return;
  while (!way.held.empty() && way.come_below >= way.held.front().behind) {
    Message& message = way.held.front().message;
    way.held_bytes -= size_of(message);
    events_.push_back({.kind = Event::Kind::message, .peer = peer, .frames = std::move(message)});
    way.held.pop_front();
    ++way.by_line.come;
  }
}

/// What it sends cannot be put in order.
void LineTransport::give_up(const Peer& peer) {
  const auto found = ways_.find(peer);
  const bool is_known = found != ways_.end() && (found->second.is_connected || found->second.is_ours);
  disconnect(peer);
  if (!is_known) return;
  events_.push_back(
      {.kind = Event::Kind::disconnected, .peer = peer, .frames = {}, .cause = peer + " broke the rules of its line"});
}

LineTransport::Counts LineTransport::by_line(const Peer& peer) const {
  const auto found = ways_.find(peer);
  return found == ways_.end() ? Counts{} : found->second.by_line;
}

}  // namespace paceline::channel
