#include "runtime/process/fork_protocol.h"

#include <cstring>
#include <type_traits>

#include "runtime/process/fd_passing.h"

namespace paceline::process {
namespace {

constexpr std::uint32_t kMagic = 0x4b464c50;  // "PLFK"

class Writer {
 public:
  template <class T>
  void number(T value) {
    static_assert(std::is_integral_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);  // One host: its byte order.
  }
  void text(std::string_view value) {
    number(static_cast<std::uint32_t>(value.size()));
    bytes_.append(value);
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

/// After the first read beyond the end everything reads as zero and ok() is false.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  template <class T>
  T number() {
    T value{};
    if (rest_.size() < sizeof value) {
      ok_ = false;
      rest_ = {};
      return value;
    }
    std::memcpy(&value, rest_.data(), sizeof value);
    rest_.remove_prefix(sizeof value);
    return value;
  }
  std::string text() {
    const auto size = number<std::uint32_t>();
    if (size > rest_.size()) {
      ok_ = false;
      rest_ = {};
      return {};
    }
    std::string value(rest_.substr(0, size));
    rest_.remove_prefix(size);
    return value;
  }
  bool ok() const { return ok_; }
  bool done() const { return ok_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

bool has_zero(std::string_view text) { return text.find('\0') != std::string_view::npos; }

}  // namespace

Result<std::string> encode(const ForkMessage& message) {
  if (message.env.size() > kForkEnvMax)
    return fail(ErrorKind::invalid, "fork request with " + std::to_string(message.env.size()) +
                                        " environment variables: at most " + std::to_string(kForkEnvMax));
  for (const auto& [name, value] : message.env)
    if (name.empty() || name.find('=') != std::string::npos || has_zero(name) || has_zero(value))
      return fail(ErrorKind::invalid, "environment variable '" + name +
                                          "': a name is not empty and has no '=', neither part has a zero byte");
  if (has_zero(message.text)) return fail(ErrorKind::invalid, "a path or text of a fork message has a zero byte");

  Writer out;
  out.number(kMagic);
  out.number(kForkProtocolVersion);
  out.number(static_cast<std::uint16_t>(message.kind));
  out.number(message.worker.value);
  out.number(static_cast<std::int32_t>(message.pid));
  out.number(static_cast<std::uint8_t>(message.exit.signalled));
  out.number(static_cast<std::int32_t>(message.exit.code));
  out.text(message.text);
  out.number(static_cast<std::uint32_t>(message.env.size()));
  for (const auto& [name, value] : message.env) {
    out.text(name);
    out.text(value);
  }
  std::string bytes = out.take();
  if (bytes.size() > kPacketBytesMax)
    return fail(ErrorKind::invalid, "fork message of " + std::to_string(bytes.size()) + " bytes: at most " +
                                        std::to_string(kPacketBytesMax) + "; pass less in the environment");
  return bytes;
}

Result<ForkMessage> decode_fork_message(std::string_view bytes) {
  Reader in(bytes);
  if (in.number<std::uint32_t>() != kMagic)
    return fail(ErrorKind::invalid, "a fork server's socket carried something else than its messages");
  if (const auto version = in.number<std::uint16_t>(); version != kForkProtocolVersion)
    return fail(ErrorKind::invalid, "fork server protocol " + std::to_string(version) + " met " +
                                        std::to_string(kForkProtocolVersion) +
                                        ": compile the actor script against this version of Paceline");
  ForkMessage message;
  const auto kind = in.number<std::uint16_t>();
  message.kind = static_cast<ForkMessage::Kind>(kind);
  message.worker = WorkerId(in.number<std::uint64_t>());
  message.pid = in.number<std::int32_t>();
  message.exit.signalled = in.number<std::uint8_t>() != 0;
  message.exit.code = in.number<std::int32_t>();
  message.text = in.text();
  const auto variables = in.number<std::uint32_t>();
  if (variables > kForkEnvMax) return fail(ErrorKind::invalid, "fork message with too many environment variables");
  for (std::uint32_t i = 0; i < variables && in.ok(); ++i) {
    std::string name = in.text();
    message.env.emplace_back(std::move(name), in.text());
  }
  if (!in.done() || kind < 1 || kind > static_cast<std::uint16_t>(ForkMessage::Kind::exited))
    return fail(ErrorKind::invalid, "damaged fork message of " + std::to_string(bytes.size()) + " bytes");
  return message;
}

}  // namespace paceline::process
