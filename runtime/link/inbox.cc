#include "runtime/link/inbox.h"

#include <algorithm>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

#include "runtime/base/huge_pages.h"

namespace paceline::link {

Inbox::Inbox(Options options) : options_(options) {
  for (std::size_t lane = 0; lane < kLanes; ++lane)
    limit_[lane] = told_limit_[lane] = lane < kClasses ? options_.head_credit : options_.bulk_credit;
}

void Inbox::Incoming::settle() {
  while (at < frames.size() && missing[at] == 0) ++at;
}

/// Whether a unit is the next of its lane, and within its credit; if so it counts as come.
Result<Inbox::Came> Inbox::place(std::size_t lane, std::uint64_t number, std::uint64_t bytes) {
  if (number < next_[lane]) return Came::again;
  if (number > next_[lane]) return Came::gap;
  if (bytes > limit_[lane] - come_[lane]) return fail(ErrorKind::invalid, "more than its credit");
  ++next_[lane];
  come_[lane] += bytes;
  return Came::in_order;
}

/// A message as it is announced, with the frames that have come with it.
Result<Inbox::Incoming> Inbox::incoming(const Head& head, std::span<const transport::Piece> pieces) const {
  Incoming message;
  std::uint64_t total = 0;
  std::size_t piece = 0;
  for (const auto& frame : head.frames) {
    if (frame.bytes > options_.message_bytes_max - total)
      return fail(ErrorKind::invalid,
                  "a message of more than " + std::to_string(options_.message_bytes_max) + " bytes");
    total += frame.bytes;
    const bool here = frame.is_inline && piece < pieces.size() && pieces[piece].bytes.size() == frame.bytes;
    if (frame.is_inline != here || (!here && frame.bytes == 0))
      return fail(ErrorKind::invalid, "a message whose frames are not as it says");
    message.missing.push_back(here ? 0 : frame.bytes);
    Frame& bytes = message.frames.emplace_back();
    if (!here) continue;
    bytes.assign(pieces[piece].bytes.begin(), pieces[piece].bytes.end());
    message.head_bytes += bytes.size();
    ++piece;
  }
  if (piece != pieces.size() || head.frames.empty() || head.frames.front().bytes == 0)
    return fail(ErrorKind::invalid, "a message whose frames are not as it says");
  message.head_bytes += kUnitBytes;
  message.settle();
  return message;
}

Result<Inbox::Came> Inbox::on_head(const Head& head, std::span<const transport::Piece> pieces) {
  const std::size_t lane = head_lane(head.of);
  if (head.number != next_[lane]) return place(lane, head.number, 0);
  auto message = incoming(head, pieces);
  if (!message) return tl::unexpected(message.error());
  auto placed = place(lane, head.number, message->head_bytes);
  if (!placed) return placed;
  if (message->head_bytes >= kLargeBytes) untold_large_ += message->head_bytes;
  messages_[static_cast<std::size_t>(head.of)].push_back(*std::move(message));
  ++untold_heads_;
  return placed;
}

Result<Inbox::Came> Inbox::on_chunk(const Chunk& chunk, std::span<const transport::Piece> pieces) {
  const std::size_t lane = bulk_lane(chunk.of);
  if (chunk.number != next_[lane]) return place(lane, chunk.number, 0);
  auto& messages = messages_[static_cast<std::size_t>(chunk.of)];
  const auto message = std::find_if(messages.begin(), messages.end(), [](const auto& m) { return !m.is_whole(); });
  if (message == messages.end()) return Came::gap;  // Its message is to come before it.
  std::uint64_t& missing = message->missing[message->at];
  if (pieces.size() != 1 || pieces[0].bytes.empty() || pieces[0].bytes.size() > missing)
    return fail(ErrorKind::invalid, "a chunk that is no part of what was announced");
  const auto bytes = pieces[0].bytes;
  auto placed = place(lane, chunk.number, bytes.size());
  if (!placed) return placed;
  Frame& frame = message->frames[message->at];
  try {
    if (frame.empty()) {
      frame.reserve(missing);
      offer_huge_pages(frame.data(), frame.capacity());
    }
  } catch (const std::exception&) {  // bad_alloc, length_error.
    return fail(ErrorKind::overloaded, "a message for which there is no memory: " + std::to_string(missing) + " bytes");
  }
  frame.insert(frame.end(), bytes.begin(), bytes.end());
  missing -= bytes.size();
  limit_[lane] += bytes.size();
  untold_large_ += bytes.size();
  message->settle();
  return placed;
}

bool Inbox::has(const PerLane<std::uint64_t>& sent) const {
  for (std::size_t lane = 0; lane < kLanes; ++lane)
    if (sent[lane] > next_[lane]) return false;
  return true;
}

std::optional<std::vector<Frame>> Inbox::take() {
  for (std::size_t c = 0; c < kClasses; ++c) {
    auto& messages = messages_[c];
    if (messages.empty() || !messages.front().is_whole()) continue;
    auto frames = std::move(messages.front().frames);
    limit_[head_lane(Class(c))] += messages.front().head_bytes;
    messages.pop_front();
    return frames;
  }
  return std::nullopt;
}

PerLane<Receipt> Inbox::receipts() const {
  PerLane<Receipt> receipts{};
  for (std::size_t lane = 0; lane < kLanes; ++lane) receipts[lane] = {next_[lane], limit_[lane]};
  return receipts;
}

bool Inbox::is_waiting() const {
  return std::any_of(messages_.begin(), messages_.end(), [](const auto& messages) { return !messages.empty(); });
}

bool Inbox::owes_credit() const {
  for (std::size_t lane = 0; lane < kLanes; ++lane)
    if (limit_[lane] - told_limit_[lane] >= (lane < kClasses ? options_.head_credit : options_.bulk_credit) / 4)
      return true;
  return false;
}

void Inbox::told() {
  told_limit_ = limit_;
  untold_large_ = untold_heads_ = 0;
}

}  // namespace paceline::link
