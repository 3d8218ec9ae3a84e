#include "cli/tensorboard.h"

#include <bit>
#include <cstdint>
#include <string_view>

namespace paceline::cli {
namespace {

// Fields of protocol buffers: (number << 3) | how it is written.
constexpr char kWallTime = 1 << 3 | 1, kStep = 2 << 3 | 0, kFileVersion = 3 << 3 | 2, kSummary = 5 << 3 | 2;
constexpr char kValue = 1 << 3 | 2, kTag = 1 << 3 | 2, kSimpleValue = 2 << 3 | 5;

template <class T>
void append_plain(std::string& out, T value) {  // The least byte first.
  for (std::size_t i = 0; i < sizeof value; ++i) out.push_back(static_cast<char>(value >> (8 * i) & 0xff));
}

void append_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

void append_text(std::string& out, char field, std::string_view text) {
  out.push_back(field);
  append_varint(out, text.size());
  out += text;
}

std::string event(double wall_time) {
  std::string event{kWallTime};
  append_plain(event, std::bit_cast<std::uint64_t>(wall_time));
  return event;
}

/// A check sum over bytes that may hold check sums is rotated and shifted, as the format has it.
std::uint32_t masked(std::string_view bytes) { return std::rotr(crc32c(bytes), 15) + 0xa282ead8U; }

void append_record(std::string& out, std::string_view data) {
  std::string length;
  append_plain(length, static_cast<std::uint64_t>(data.size()));
  out += length;
  append_plain(out, masked(length));
  out += data;
  append_plain(out, masked(data));
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  std::uint32_t crc = ~0U;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78U : 0);
  }
  return ~crc;
}

std::string tag_of(const recorded::Scalar& scalar) {
  return scalar.worker < 0 ? scalar.name : scalar.name + "/worker-" + std::to_string(scalar.worker);
}

std::string tensorboard_events(const std::vector<recorded::Scalar>& scalars, double began) {
  std::string version = event(began);
  append_text(version, kFileVersion, "brain.Event:2");
  std::string out;
  append_record(out, version);
  for (const auto& scalar : scalars) {
    std::string value;
    append_text(value, kTag, tag_of(scalar));
    value.push_back(kSimpleValue);
    append_plain(value, std::bit_cast<std::uint32_t>(static_cast<float>(scalar.value)));
    std::string summary;
    append_text(summary, kValue, value);
    std::string one = event(began + scalar.clock_s);
    one.push_back(kStep);
    append_varint(one, static_cast<std::uint64_t>(scalar.update));
    append_text(one, kSummary, summary);
    append_record(out, one);
  }
  return out;
}

}  // namespace paceline::cli
