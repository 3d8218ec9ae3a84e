#include "runtime/channel/ring_channel.h"

#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <new>
#include <string>
#include <utility>

#include "runtime/process/this_process.h"
#include "runtime/store/mapping.h"
#include "runtime/store/shared_memory.h"

namespace paceline::channel {
namespace {

constexpr std::uint64_t kMagic = 0x32676e6972636170;  // "pacring2"

/// The first page of the memory; behind it lie the bytes of the ring to the maker, then those of the other.
struct Head {
  std::uint64_t magic = kMagic;
  std::uint64_t to_maker_capacity = 0;
  std::uint64_t from_maker_capacity = 0;
  RingHeader to_maker;
  RingHeader from_maker;
};

std::uint64_t page() {
  static const auto bytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

tl::unexpected<Error> broken(const Error& error) {
  return fail(ErrorKind::disconnected, "the channel is broken: " + error.text);
}

std::uint64_t rounded(std::uint64_t capacity) { return std::bit_ceil(std::max(capacity, page())); }

}  // namespace

struct RingChannel::Mapping {
  store::Mapping head, to_maker, from_maker;
  std::uint64_t to_maker_capacity = 0;  // The other end may write to the head.
  std::uint64_t from_maker_capacity = 0;

  Result<void> map(process::BorrowedFd fd, std::uint64_t to, std::uint64_t from) {
    to_maker_capacity = to;
    from_maker_capacity = from;
    return keep(head, store::Mapping::map(fd, page(), store::Mapping::Access::write, "channel"))
        .and_then([&] { return keep(to_maker, store::Mapping::twice(fd, page(), to, "channel")); })
        .and_then([&] { return keep(from_maker, store::Mapping::twice(fd, page() + to, from, "channel")); });
  }
  RingMemory ring_to_maker() const { return {&at()->to_maker, to_maker.data(), to_maker_capacity}; }
  RingMemory ring_from_maker() const { return {&at()->from_maker, from_maker.data(), from_maker_capacity}; }

 private:
  Head* at() const { return std::launder(reinterpret_cast<Head*>(head.data())); }
  static Result<void> keep(store::Mapping& where, Result<store::Mapping> mapped) {
    if (!mapped) return tl::unexpected(mapped.error());
    where = *std::move(mapped);
    return {};
  }
};

Result<std::unique_ptr<RingChannel>> RingChannel::create(const Options& options) {
  static_assert(sizeof(Head) <= 4096 && std::atomic<std::uint64_t>::is_always_lock_free);
  const std::uint64_t to = rounded(options.to_maker), from = rounded(options.from_maker);
  const std::uint64_t size = page() + to + from;
  auto fd = store::create_memory({.name = "paceline-channel",
                                  .size = size,
                                  .allocated = size,
                                  .sealed = store::MemoryShape::Sealed::size_for_good});
  if (!fd) return tl::unexpected(fd.error());
  auto mapping = std::make_unique<Mapping>();
  PACELINE_TRY(mapping->map(*fd, to, from));
  auto* const head = new (mapping->head.data()) Head();
  head->to_maker_capacity = to;
  head->from_maker_capacity = from;
  process::Fd own(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  process::Fd other(options.other_has_bell ? ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) : -1);
  if (!own || (options.other_has_bell && !other)) return fail_errno("channel: eventfd");
  return std::unique_ptr<RingChannel>(
      new RingChannel(std::move(mapping), *std::move(fd), std::move(own), std::move(other), true));
}

Result<std::unique_ptr<RingChannel>> RingChannel::open(std::vector<process::Fd> fds) {
  if (fds.size() != 2 && fds.size() != 3)
    return fail(ErrorKind::invalid, "channel: " + std::to_string(fds.size()) + " descriptors, expected 2 or 3");
  struct stat status {};
  if (::fstat(fds[0].get(), &status) != 0) return fail_errno("channel: fstat");
  const auto size = static_cast<std::uint64_t>(status.st_size);
  PACELINE_TRY(store::check_memory(fds[0], size, "channel"));
  const auto strange = fail(ErrorKind::invalid, "channel: the shared memory is none of this version of Paceline");
  if (size < 3 * page()) return strange;
  const auto first = store::Mapping::map(fds[0], page(), store::Mapping::Access::read, "channel");
  if (!first) return tl::unexpected(first.error());
  const auto* const head = reinterpret_cast<const Head*>(first->data());
  const std::uint64_t magic = head->magic, to = head->to_maker_capacity, from = head->from_maker_capacity;
  if (magic != kMagic || to > size || from > size || to != rounded(to) || from != rounded(from) ||
      page() + to + from != size)
    return strange;
  auto mapping = std::make_unique<Mapping>();
  PACELINE_TRY(mapping->map(fds[0], to, from));
  process::Fd own = fds.size() == 3 ? std::move(fds[2]) : process::Fd();
  return std::unique_ptr<RingChannel>(
      new RingChannel(std::move(mapping), process::Fd(), std::move(own), std::move(fds[1]), false));
}

RingChannel::RingChannel(std::unique_ptr<Mapping> mapping, process::Fd memory, process::Fd own_bell,
                         process::Fd other_bell, bool maker)
    : mapping_(std::move(mapping)),
      memory_(std::move(memory)),
      own_bell_(std::move(own_bell)),
      other_bell_(std::move(other_bell)),
      writer_(maker ? mapping_->ring_from_maker() : mapping_->ring_to_maker(), other_bell_.get()),
      reader_(maker ? mapping_->ring_to_maker() : mapping_->ring_from_maker(), other_bell_.get()),
      owner_(process::this_process()) {}

RingChannel::~RingChannel() = default;

std::vector<process::BorrowedFd> RingChannel::descriptors() const {
  std::vector<process::BorrowedFd> all{memory_, own_bell_};
  if (other_bell_) all.emplace_back(other_bell_);
  return all;
}

/// A forked child's parent goes on using the channel.
Result<void> RingChannel::check_owner() const {
  if (owner_ == process::this_process()) return {};
  return fail(ErrorKind::disconnected, "this process is a forked copy of the one whose channel this is");
}

Result<void> RingChannel::send(std::span<const Frame> frames, Duration patience) {
  PACELINE_TRY(check_owner());
  if (cut_off_) return broken(*cut_off_);
  PACELINE_TRY(check_bounds(frames));
  std::uint64_t needed = 0;
  for (const Frame& frame : frames) needed += bytes_of_fragment(frame.size());
  if (needed > writer_.capacity()) return stream(frames, patience);
  if (!writer_.wait_for_room(needed, patience, spins_))
    return fail(ErrorKind::overloaded, "the channel is full: its other end does not read");
  for (std::size_t i = 0; i < frames.size(); ++i) writer_.write(frames[i], i + 1 < frames.size() ? kMoreFrames : 0);
  writer_.publish();
  ++sent_;
  return {};
}

std::uint64_t RingChannel::untaken() const { return sent_ - std::min(sent_, writer_.taken()); }

/// A message that is larger than the ring: in fragments, while the other end reads.
Result<void> RingChannel::stream(std::span<const Frame> frames, Duration patience) {
  const std::uint64_t piece_max = writer_.capacity() / 2;
  if (patience == Duration::zero())
    return fail(ErrorKind::overloaded, "the message is larger than the channel: it takes some time to leave");
  bool begun = false;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    std::span<const std::byte> rest(frames[i]);
    do {
      const std::uint64_t wanted = std::min(bytes_of_fragment(rest.size()), piece_max);
      if (!writer_.wait_for_room(wanted, patience, spins_)) {
        if (!begun) return fail(ErrorKind::overloaded, "the channel is full: its other end does not read");
        cut_off_ = Error{ErrorKind::disconnected, "its other end stopped reading in the middle of a message"};
        return broken(*cut_off_);
      }
      const auto piece = rest.first(std::min<std::uint64_t>(rest.size(), piece_max - sizeof(FragmentHeader)));
      rest = rest.subspan(piece.size());
      writer_.write(piece, (rest.empty() ? 0 : kMoreOfFrame) | (i + 1 < frames.size() ? kMoreFrames : 0));
      writer_.publish();
      begun = true;
    } while (!rest.empty());
  }
  ++sent_;
  return {};
}

/// Adds a fragment to what came of its message; false: that is beyond the bounds.
bool RingChannel::take(const RingReader::Fragment& fragment) {
  partial_bytes_ += fragment.bytes.size();
  if (!frame_open_) {
    if (++frames_ > partial_.size()) partial_.emplace_back();
    partial_[frames_ - 1].clear();
  }
  if (frames_ > kFramesMax || partial_bytes_ > kMessageBytesMax) return false;
  Frame& frame = partial_[frames_ - 1];
  frame.insert(frame.end(), fragment.bytes.begin(), fragment.bytes.end());
  frame_open_ = (fragment.more & kMoreOfFrame) != 0;
  return true;
}

/// What is there of a message is kept until the rest is.
Result<bool> RingChannel::next(Message& message) {
  RingReader::Fragment fragment;
  while (!broken_) {
    switch (reader_.next(fragment)) {
      case RingReader::Found::nothing: return false;
      case RingReader::Found::fragment:
        if (!take(fragment)) {
          broken_ = Error{ErrorKind::disconnected, "a message beyond the bounds came"};
          break;
        }
        reader_.pop();
        if (fragment.more != 0) break;
        if (partial_.size() > frames_) partial_.resize(frames_);
        message.swap(partial_);
        frames_ = partial_bytes_ = 0;
        reader_.take();
        return true;
      case RingReader::Found::nonsense:
        broken_ = Error{ErrorKind::disconnected, "what stands in its memory is no message"};
        break;
    }
  }
  return broken(*broken_);
}

Result<bool> RingChannel::receive(Message& message, Duration timeout) {
  PACELINE_TRY(check_owner());
  while (true) {
    auto came = next(message);
    if (!came || *came) return came;
    if (timeout == Duration::zero()) {
      if (!own_bell_ || rest_on_bell()) return false;
    } else if (!reader_.wait(timeout, spins_)) {
      return false;
    }
  }
}

Result<bool> RingChannel::look(Message& message) {
  PACELINE_TRY(check_owner());
  reader_.stay_awake();
  return next(message);
}

void RingChannel::silence() {
  if (std::exchange(may_ring_, false)) clear_bell();
}

void RingChannel::clear_bell() {
  std::uint64_t count = 0;
  [[maybe_unused]] const auto got = ::read(own_bell_.get(), &count, sizeof count);
}

/// False: there is something to receive.
bool RingChannel::rest_on_bell() {
  if (reader_.is_armed(Sleep::on_bell)) return true;  // Nobody has rung since.
  // Until it rests the bell stays readable: an event loop that leaves with messages unread is called again.
  if (!reader_.arm(Sleep::on_bell)) return false;
  clear_bell();
  may_ring_ = true;
  if (reader_.is_armed(Sleep::on_bell)) return true;
  const std::uint64_t one = 1;  // Somebody rang meanwhile, and that may just have been read away.
  [[maybe_unused]] const auto rung = ::write(own_bell_.get(), &one, sizeof one);
  return false;
}

}  // namespace paceline::channel
