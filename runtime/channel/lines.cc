#include "runtime/channel/lines.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "runtime/process/fd_passing.h"

namespace paceline::channel {
namespace {

constexpr std::size_t kLineTurn = 256;  // Messages of one line before others have their turn.
constexpr std::size_t kStrangersMax = 64;
constexpr std::size_t kNameMax = 255;
constexpr int kBacklog = 128;

Result<sockaddr_un> address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path)
    return fail(ErrorKind::invalid,
                path + ": a socket's path has at most " + std::to_string(sizeof address.sun_path - 1) + " bytes");
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

bool is_ours(int socket) {
  ucred other{};
  socklen_t size = sizeof other;
  return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &other, &size) == 0 && other.uid == geteuid();
}

void ring(int bell) {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto rung = ::write(bell, &one, sizeof one);
}

}  // namespace

struct Lines::Line {
  std::mutex sending;
  std::unique_ptr<RingChannel> channel;
  process::Fd socket;
  bool ending = false;
  bool dropped = false;
  bool over = false;  ///< Under `sending`: nothing more is sent.
};

Result<std::unique_ptr<Lines>> Lines::create(std::string self, Listener listener) {
  auto loop = EventLoop::create();
  if (!loop) return tl::unexpected(loop.error());
  return std::unique_ptr<Lines>(new Lines(std::move(self), std::move(listener), *std::move(loop)));
}

Lines::Lines(std::string self, Listener listener, EventLoop loop)
    : self_(std::move(self)), listener_(std::move(listener)), loop_(std::move(loop)) {}

Lines::~Lines() = default;

Result<void> Lines::listen(const std::string& path) {
  const auto address = address_of(path);
  if (!address) return tl::unexpected(address.error());
  process::Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return fail_errno("socket");
  (void)::unlink(path.c_str());  // Of a process of this name that was killed.
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address) != 0 ||
      ::listen(socket.get(), kBacklog) != 0)
    return fail_errno("listen at " + path);
  listening_ = std::move(socket);
  return loop_.watch(listening_.get(), [this] { accept(); });
}

Result<void> Lines::connect(const std::string& peer, const std::string& path) {
  if (out_.size() >= kOutMax) return fail(ErrorKind::overloaded, std::to_string(kOutMax) + " lines are open already");
  const auto address = address_of(path);
  if (!address) return tl::unexpected(address.error());
  process::Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return fail_errno("socket");
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address) != 0)
    return fail(ErrorKind::disconnected, "nobody listens at " + path + ": " + std::strerror(errno));
  auto channel = RingChannel::create({.to_maker = kRingBytes, .from_maker = kRingBytes, .other_has_bell = true});
  if (!channel) return tl::unexpected(channel.error());
  PACELINE_TRY(process::send_with_fds(socket, self_, (*channel)->descriptors()));
  (*channel)->are_sent();
  return add(out_, peer, *std::move(channel), std::move(socket));
}

void Lines::accept() {
  while (true) {
    process::Fd socket(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) return;
    if (!is_ours(socket.get()) || accepted_.size() >= kStrangersMax) continue;
    const int fd = socket.get();
    accepted_[fd] = std::move(socket);
    if (!loop_.watch(fd, [this, fd] { on_first_word(fd); })) accepted_.erase(fd);
  }
}

void Lines::on_first_word(int fd) {
  loop_.forget(fd);
  auto socket = std::move(accepted_.extract(fd).mapped());
  auto word = process::receive_with_fds(socket, 0);
  if (!word) return;
  auto channel = RingChannel::open(std::move(word->fds));
  if (!channel || word->bytes.empty() || word->bytes.size() > kNameMax || in_.size() >= kInMax ||
      in_.contains(word->bytes))
    return;
  (void)add(in_, word->bytes, *std::move(channel), std::move(socket));
}

Result<void> Lines::add(Map& lines, const std::string& peer, std::unique_ptr<RingChannel> channel, process::Fd socket) {
  auto line = std::make_shared<Line>();
  const int bell = channel->descriptor(), life = socket.get();
  line->channel = std::move(channel);
  line->socket = std::move(socket);
  {
    std::lock_guard lock(mutex_);
    lines[peer] = std::move(line);
  }
  // Both ends are heard out before they are believed to be over.
  auto watched = loop_.watch(bell, [this, &lines, peer] { (void)hear(lines, peer); });
  if (watched) watched = loop_.watch(life, [this, &lines, peer] { end(lines, peer); });
  if (watched) {  // It is heard at once: its other end may have said much before this one was there, and rung nobody.
    ring(bell);
    return {};
  }
  loop_.forget(bell);
  std::lock_guard lock(mutex_);
  lines.erase(peer);
  return watched;
}

std::shared_ptr<Lines::Line> Lines::find(const Map& lines, const std::string& peer) {
  std::lock_guard lock(mutex_);
  const auto it = lines.find(peer);
  return it == lines.end() ? nullptr : it->second;
}

bool Lines::send(const Map& lines, const std::string& peer, std::span<const Frame> message) {
  std::size_t bytes = 0;
  for (const Frame& frame : message) bytes += frame.size();
  if (bytes > kMessageMax) return false;
  const auto line = find(lines, peer);
  if (!line) return false;
  std::lock_guard lock(line->sending);
  return !line->over && line->channel->send(message, Duration::zero()).has_value();
}

/// False: nothing more will come.
bool Lines::hear(Map& lines, const std::string& peer) {
  const auto line = find(lines, peer);
  if (!line) return false;
  Message message;
  for (std::size_t heard = 0; heard < kLineTurn; ++heard) {
    const auto came = line->channel->receive(message, Duration::zero());
    if (!came) {
      end(lines, peer);  // What was to come is broken.
      return false;
    }
    if (!*came) return false;
    tell(lines, peer, message);
    if (line->dropped) return false;
  }
  return true;  // Its bell stays readable.
}

void Lines::tell(const Map& lines, const std::string& peer, Message& message) {
  (&lines == &out_ ? listener_.answered : listener_.called)(peer, std::exchange(message, {}));
}

Lines::Watch Lines::watch(std::size_t most) {
  std::vector<Watch::Watched> watched;
  std::lock_guard lock(mutex_);
  if (in_.size() + out_.size() > most) return Watch(*this, {});
  for (Map* const map : {&in_, &out_})
    for (const auto& [peer, line] : *map) watched.push_back({map, peer, line});
  return Watch(*this, std::move(watched));
}

void Lines::rest() { const Watch all = watch(SIZE_MAX); }

void Lines::Watch::look() {
  Message message;
  for (auto& [map, peer, line] : watched_) {
    for (std::size_t heard = 0; heard < kLineTurn && !line->ending; ++heard) {
      const auto came = line->channel->look(message);
      if (!came || !*came) break;  // One that is broken ends when it is heard.
      lines_.tell(*map, peer, message);
    }
  }
}

void Lines::Watch::leave() {
  for (auto& [map, peer, line] : std::exchange(watched_, {}))
    if (!line->ending) line->channel->silence();
}

Lines::Watch::~Watch() {
  for (auto& [map, peer, line] : watched_) {
    if (line->ending || !lines_.hear(*map, peer)) continue;
    ring(line->channel->descriptor());  // There is more: whoever serves goes on.
  }
}

void Lines::end(Map& lines, const std::string& peer) {
  const auto line = find(lines, peer);
  if (!line || std::exchange(line->ending, true)) return;
  while (hear(lines, peer)) {
  }
  if (line->dropped) return;
  remove(lines, peer, *line);
  std::size_t untaken = 0;
  {
    std::lock_guard lock(line->sending);
    line->over = true;
    untaken = line->channel->untaken();
  }
  if (&lines == &out_) return listener_.ended(peer, untaken);
  if (listener_.left) listener_.left(peer);
}

void Lines::remove(Map& lines, const std::string& peer, const Line& line) {
  loop_.forget(line.socket.get());
  loop_.forget(line.channel->descriptor());
  std::lock_guard lock(mutex_);
  lines.erase(peer);
}

void Lines::hear_out(const std::string& peer) {
  for (Map* lines : {&out_, &in_})
    while (hear(*lines, peer)) {
    }
}

void Lines::drop(const std::string& peer) {
  for (Map* lines : {&out_, &in_}) {
    const auto line = find(*lines, peer);
    if (!line) continue;
    line->ending = line->dropped = true;
    remove(*lines, peer, *line);
  }
}

void Lines::serve() { (void)loop_.run_once(Duration::zero()); }

}  // namespace paceline::channel
