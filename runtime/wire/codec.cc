#include "runtime/wire/codec.h"

#include <string>

namespace paceline::wire {
namespace {

/// Appends what is written to it to a frame.
class FrameStream final : public kj::OutputStream {
 public:
  explicit FrameStream(std::size_t bytes) { frame.reserve(bytes); }
  void write(const void* bytes, std::size_t count) override {
    const auto* first = static_cast<const std::byte*>(bytes);
    frame.insert(frame.end(), first, first + count);
  }
  Frame frame;
};

bool is_aligned(const void* address) { return reinterpret_cast<std::uintptr_t>(address) % alignof(capnp::word) == 0; }

}  // namespace

Message::Message() : scratch_{} { clear(); }

Message::Message(const Envelope::Reader& envelope) : scratch_{} {
  builder_.emplace(kj::arrayPtr(scratch_.data(), scratch_.size()));
  builder_->setRoot(envelope);
}

void Message::clear() {
  builder_.reset();  // Zeroes the part of scratch_ that was used.
  builder_.emplace(kj::arrayPtr(scratch_.data(), scratch_.size()));
  builder_->initRoot<Envelope>().setVersion(kProtocolVersion);
}

std::size_t Message::size_bytes() { return capnp::computeSerializedSizeInWords(*builder_) * sizeof(capnp::word); }

Frame Message::to_frame() {
  FrameStream stream(size_bytes());
  capnp::writeMessage(stream, *builder_);
  return std::move(stream.frame);
}

std::string Message::to_packet() {
  const Frame frame = to_frame();
  return {reinterpret_cast<const char*>(frame.data()), frame.size()};
}

Result<Received> Received::parse_packet(std::string_view bytes) {
  const auto* const first = reinterpret_cast<const std::byte*>(bytes.data());
  return parse({first, first + bytes.size()});
}

Result<Received> Received::parse(Frame frame) {
  const std::size_t bytes = frame.size();
  if (bytes > kMaxEnvelopeBytes) {
    return fail(ErrorKind::invalid, "message of " + std::to_string(bytes) + " bytes: the limit of an envelope is " +
                                        std::to_string(kMaxEnvelopeBytes) + ": send bulk data in frames of its own");
  }
  if (bytes < 2 * sizeof(capnp::word) || bytes % sizeof(capnp::word) != 0) {
    return fail(ErrorKind::invalid,
                "message of " + std::to_string(bytes) + " bytes is truncated or no Paceline message");
  }
  Received received;
  received.frame_ = is_aligned(frame.data()) ? std::move(frame) : Frame(frame.begin(), frame.end());
  try {
    const auto words = kj::arrayPtr(reinterpret_cast<const capnp::word*>(received.frame_.data()),
                                    received.frame_.size() / sizeof(capnp::word));
    capnp::ReaderOptions limits;
    // Handlers may look at a field several times; a small message that unfolds to gigabytes is an attack.
    limits.traversalLimitInWords = 8 * words.size() + 1024;
    limits.nestingLimit = kMaxNesting;
    received.reader_ = std::make_unique<capnp::FlatArrayMessageReader>(words, limits);
    if (received.reader_->getEnd() != words.end()) {
      return fail(ErrorKind::invalid, "message of " + std::to_string(bytes) + " bytes has others behind its end");
    }
    received.root_ = received.reader_->getRoot<Envelope>();
  } catch (const kj::Exception& damage) {
    return damaged(damage, bytes);
  }
  if (const std::uint32_t version = received.root_.getVersion(); version != kProtocolVersion) {
    return fail(ErrorKind::invalid, "peer speaks Paceline protocol " + std::to_string(version) + ", this is " +
                                        std::to_string(kProtocolVersion) + ": install the same version on both");
  }
  return received;
}

tl::unexpected<Error> Received::damaged(const kj::Exception& damage, std::size_t bytes) {
  return fail(ErrorKind::invalid,
              "message of " + std::to_string(bytes) + " bytes is damaged: " + damage.getDescription().cStr());
}

Frame refusal(const Error& error) {
  Message message;
  auto body = message.root().initRefused();
  body.setKind(std::string(to_string(error.kind)));
  body.setText(error.text);
  return message.to_frame();
}

Frame welcome(const std::string& name, NodeId node, std::uint32_t process) {
  Message message;
  auto body = message.root().initWelcome();
  body.setName(name);
  body.setNode(node.value);
  body.setProcess(process);
  return message.to_frame();
}

std::optional<JobId> job_of(const Envelope::Reader& envelope) {
  switch (envelope.which()) {
    case Envelope::OPEN_SHARE: return JobId{envelope.getOpenShare().getJob()};
    case Envelope::ARRIVE: return JobId{envelope.getArrive().getJob()};
    case Envelope::REPORT: return JobId{envelope.getReport().getJob()};
    case Envelope::REPLICA_WANTED: return JobId{envelope.getReplicaWanted().getJob()};
    case Envelope::OPEN_OBJECT: return JobId{envelope.getOpenObject().getJob()};
    case Envelope::SEAL_OBJECT: return JobId{envelope.getSealObject().getJob()};
    case Envelope::ACTIVATE: return JobId{envelope.getActivate().getJob()};
    case Envelope::PARTIAL: return JobId{envelope.getPartial().getJob()};
    case Envelope::RELEASED: return JobId{envelope.getReleased().getJob()};
    case Envelope::REPLICA_NONE: return JobId{envelope.getReplicaNone().getJob()};
    case Envelope::REPLICA_DATA: return JobId{envelope.getReplicaData().getJob()};
    case Envelope::STOP_ROUNDS: return JobId{envelope.getStopRounds().getJob()};
    case Envelope::FLUSHED: return JobId{envelope.getFlushed().getJob()};
    case Envelope::SETTLED: return JobId{envelope.getSettled().getJob()};
    case Envelope::SHARE: return JobId{envelope.getShare().getJob()};
    case Envelope::GONE: return JobId{envelope.getGone().getJob()};
    case Envelope::AWAITED: return JobId{envelope.getAwaited().getJob()};
    case Envelope::ENDING: return JobId{envelope.getEnding().getJob()};
    case Envelope::EXCHANGE: return JobId{envelope.getExchange().getJob()};
    case Envelope::BATCH: return JobId{envelope.getBatch().getJob()};
    case Envelope::DRAIN: return JobId{envelope.getDrain().getJob()};
    case Envelope::NODE_GONE: return JobId{envelope.getNodeGone().getJob()};
    default: return std::nullopt;
  }
}

}  // namespace paceline::wire
