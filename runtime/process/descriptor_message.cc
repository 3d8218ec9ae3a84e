#include "runtime/process/descriptor_message.h"

#include <cstring>
#include <optional>
#include <utility>

namespace paceline::process {
namespace {

using Kind = DescriptorMessage::Kind;

/// Both ends are on one machine.
struct Header {
  std::uint32_t version = kDescriptorProtocolVersion;
  Kind kind = Kind::answer;
  std::uint16_t fds = 0;
  std::uint64_t request = 0;
};
static_assert(sizeof(Header) == kDescriptorHeaderBytes);

/// nullopt: it is no kind.
std::optional<std::pair<std::size_t, std::size_t>> fds_of(Kind kind) {
  constexpr std::size_t kAnswerMax = 2;
  switch (kind) {
    case Kind::answer: return std::pair<std::size_t, std::size_t>{0, kAnswerMax};
    case Kind::failure:
    case Kind::open_channel:
    case Kind::find_state: return std::pair<std::size_t, std::size_t>{0, 0};
    case Kind::keep_state:
    case Kind::spans:
    case Kind::captured: return std::pair<std::size_t, std::size_t>{1, 1};
  }
  return std::nullopt;
}

}  // namespace

std::string encode(Kind kind, std::uint64_t request, std::string_view body, std::size_t fds) {
  const Header header{.kind = kind, .fds = static_cast<std::uint16_t>(fds), .request = request};
  std::string bytes(sizeof header, '\0');
  std::memcpy(bytes.data(), &header, sizeof header);
  return bytes.append(body);
}

Result<DescriptorMessage> decode_descriptor_message(Packet packet) {
  const auto refuse = [](const std::string& why) {
    return fail(ErrorKind::invalid, "a packet between worker and agent " + why);
  };
  Header header;
  if (packet.bytes.size() < sizeof header) return refuse("has " + std::to_string(packet.bytes.size()) + " bytes");
  std::memcpy(&header, packet.bytes.data(), sizeof header);
  if (header.version != kDescriptorProtocolVersion)
    return refuse("is of another version of Paceline: build the program again");
  const auto bounds = fds_of(header.kind);
  if (!bounds) return refuse("is of no known kind");
  const std::size_t fds = packet.fds_lost ? header.fds : packet.fds.size();
  if (fds != header.fds || fds < bounds->first || fds > bounds->second)
    return refuse("has " + std::to_string(fds) + " descriptors");
  packet.bytes.erase(0, sizeof header);
  return DescriptorMessage{header.kind, header.request, std::move(packet.bytes), std::move(packet.fds),
                           packet.fds_lost};
}

}  // namespace paceline::process
