#include "runtime/link/link_wire.h"

#include <bit>
#include <cstring>

namespace paceline::link {
namespace {

static_assert(std::endian::native == std::endian::little);  // Words are sent as they lie in memory.

// A frame is 64-bit words: this one with kind and class in its low bytes, the sender's link, the fields; a greeting's
// address follows as text.
constexpr std::uint64_t kMagic = 0x316b'6e6c'6370;  // "pclnk1"
constexpr std::size_t kAddressMax = 256;
constexpr std::uint64_t kIsBulk = std::uint64_t{1} << 63;

class Writer {
 public:
  Writer(std::uint64_t link, std::size_t kind, Class of = Class::control) {
    put((kMagic << 16) | (static_cast<std::uint64_t>(of) << 8) | kind);
    put(link);
  }
  void put(std::uint64_t word) {
    const auto at = frame_.size();
    frame_.resize(at + sizeof word);
    std::memcpy(frame_.data() + at, &word, sizeof word);
  }
  void put(const PerLane<Receipt>& receipts) {
    for (const Receipt& receipt : receipts) {
      put(receipt.units);
      put(receipt.limit);
    }
  }
  void put(const std::string& text) {
    const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
    frame_.insert(frame_.end(), bytes, bytes + text.size());
  }
  Frame take() { return std::move(frame_); }

 private:
  Frame frame_;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> rest) : rest_(rest) {}

  std::uint64_t word() {
    std::uint64_t word = 0;
    if (rest_.size() < sizeof word) {
      is_short_ = true;
      return 0;
    }
    std::memcpy(&word, rest_.data(), sizeof word);
    rest_ = rest_.subspan(sizeof word);
    return word;
  }
  void receipts(PerLane<Receipt>& receipts) {
    for (Receipt& receipt : receipts) {
      receipt.units = word();
      receipt.limit = word();
    }
  }
  std::string text() {
    std::string text(reinterpret_cast<const char*>(rest_.data()), rest_.size());
    rest_ = {};
    return text;
  }
  std::size_t left() const { return rest_.size(); }
  bool is_whole() const { return !is_short_ && rest_.empty(); }

 private:
  std::span<const std::byte> rest_;
  bool is_short_ = false;
};

Frame encoded(std::uint64_t link, const Greeting& greeting) {
  Writer writer(link, 0);
  for (const EndId& end : {greeting.self, greeting.other}) {
    writer.put(end.incarnation);
    writer.put(end.link);
  }
  writer.put(greeting.is_ready ? 1 : 0);
  writer.put(greeting.receipts);
  writer.put(greeting.pulse.port);
  writer.put(greeting.pulse.secret);
  writer.put(greeting.address.size() <= kAddressMax ? greeting.address : std::string());
  return writer.take();
}

Frame encoded(std::uint64_t link, const State& state) {
  Writer writer(link, 1);
  writer.put(state.asks ? 1 : 0);
  writer.put(state.stamp);
  writer.put(state.echo);
  for (const auto sent : state.sent) writer.put(sent);
  writer.put(state.receipts);
  return writer.take();
}

Frame encoded(std::uint64_t link, const Head& head) {
  Writer writer(link, 2, head.of);
  writer.put(head.number);
  for (const auto& frame : head.frames) writer.put(frame.bytes | (frame.is_inline ? 0 : kIsBulk));
  return writer.take();
}

Frame encoded(std::uint64_t link, const Chunk& chunk) {
  Writer writer(link, 3, chunk.of);
  writer.put(chunk.number);
  return writer.take();
}

Frame encoded(std::uint64_t link, const Farewell&) { return Writer(link, 4).take(); }

Said greeting(Reader& reader) {
  Greeting greeting;
  for (EndId* end : {&greeting.self, &greeting.other}) {
    end->incarnation = reader.word();
    end->link = reader.word();
  }
  greeting.is_ready = reader.word() != 0;
  reader.receipts(greeting.receipts);
  greeting.pulse.port = reader.word();
  greeting.pulse.secret = reader.word();
  if (reader.left() <= kAddressMax) greeting.address = reader.text();
  return greeting;
}

Said state(Reader& reader) {
  State state;
  state.asks = reader.word() != 0;
  state.stamp = reader.word();
  state.echo = reader.word();
  for (auto& sent : state.sent) sent = reader.word();
  reader.receipts(state.receipts);
  return state;
}

Said head(Reader& reader, Class of) {
  Head head{of, reader.word(), {}};
  while (reader.left() >= sizeof(std::uint64_t) && head.frames.size() < kFramesMax) {
    const std::uint64_t word = reader.word();
    head.frames.push_back({word & ~kIsBulk, (word & kIsBulk) == 0});
  }
  return head;
}

}  // namespace

Frame encode(std::uint64_t link, const Said& said) {
  return std::visit([link](const auto& what) { return encoded(link, what); }, said);
}

Result<Word> decode(std::span<const std::byte> frame) {
  const auto strange = [] { return fail(ErrorKind::invalid, "a frame that is no word of a link of this version"); };
  Reader reader(frame);
  const std::uint64_t first = reader.word();
  const auto of = static_cast<std::uint8_t>(first >> 8);
  if (first >> 16 != kMagic || of >= kClasses) return strange();
  const std::uint64_t link = reader.word();
  Said said;
  switch (first & 0xff) {
    case 0: said = greeting(reader); break;
    case 1: said = state(reader); break;
    case 2: said = head(reader, Class{of}); break;
    case 3: said = Chunk{Class{of}, reader.word()}; break;
    case 4: said = Farewell{}; break;
    default: return strange();
  }
  if (!reader.is_whole()) return strange();
  return Word{link, std::move(said)};
}

}  // namespace paceline::link
