#include "runtime/link/outbox.h"

#include <algorithm>
#include <string>
#include <utility>

namespace paceline::link {
namespace {

std::uint64_t chunks_of(std::size_t bytes, std::size_t chunk_bytes) { return (bytes + chunk_bytes - 1) / chunk_bytes; }

}  // namespace

Result<void> Outbox::add(Class of, std::vector<transport::Piece>&& frames) {
  if (frames.empty() || frames.size() > kFramesMax || frames.front().bytes.empty())
    return fail(ErrorKind::invalid, "a message of " + std::to_string(frames.size()) + " frames: 1 to " +
                                        std::to_string(kFramesMax) + ", the first not empty");
  Queue& queue = queues_[static_cast<std::size_t>(of)];
  Outgoing message;
  std::uint64_t inlined = 0, total = 0;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const std::size_t bytes = frames[i].bytes.size();
    total += bytes;
    if (inlined + bytes <= options_.inline_bytes) {
      inlined += bytes;
    } else {
      message.bulk |= std::uint64_t{1} << i;
      message.chunks += chunks_of(bytes, options_.chunk_bytes);
    }
  }
  if (total > options_.message_bytes_max)
    return fail(ErrorKind::invalid, "a message of " + std::to_string(total) + " bytes: a link takes up to " +
                                        std::to_string(options_.message_bytes_max));
  message.head_bytes = inlined + kUnitBytes;
  if (!queue.messages.empty() && queue.bytes + message.head_bytes > options_.waiting_bytes_max)
    return fail(ErrorKind::overloaded, "the last " + std::to_string(queue.bytes >> 20) + " MiB have not been read");
  Lane& heads = lanes_[head_lane(of)];
  Lane& bulk = lanes_[bulk_lane(of)];
  message.head = heads.end++;
  heads.end_offset += message.head_bytes;
  message.first_chunk = bulk.end;
  message.bulk_offset = bulk.end_offset;
  bulk.end += message.chunks;
  bulk.end_offset += total - inlined;
  queue.bytes += message.head_bytes;
  message.frames = std::move(frames);
  queue.messages.push_back(std::move(message));
  return {};
}

std::optional<Packet> Outbox::next(Instant now) {
  for (std::size_t c = 0; c < kClasses; ++c)
    if (auto packet = next_head(Class(c), now)) return packet;
  for (std::size_t c = 0; c < kClasses; ++c)
    if (auto packet = next_chunk(Class(c), now)) return packet;
  return std::nullopt;
}

std::optional<Packet> Outbox::next_head(Class of, Instant now) {
  Lane& lane = lanes_[head_lane(of)];
  if (lane.next == lane.end) return std::nullopt;
  const Queue& queue = queues_[static_cast<std::size_t>(of)];
  const Outgoing& message = queue.messages[lane.next - queue.messages.front().head];
  if (lane.next_offset + message.head_bytes > lane.limit) return std::nullopt;
  const bool is_large = message.head_bytes >= kLargeBytes;
  if (is_large && heads_under_way_ > 0 && heads_under_way_ + message.head_bytes > window_.bytes()) {
    window_full_ = true;
    return std::nullopt;
  }
  Head head{of, lane.next, {}};
  Packet packet;
  for (std::size_t i = 0; i < message.frames.size(); ++i) {
    const transport::Piece& frame = message.frames[i];
    head.frames.push_back({frame.bytes.size(), !is_bulk(message, i)});
    if (!is_bulk(message, i)) packet.pieces.push_back(frame);
  }
  packet.word = encode(link_, head);
  if (is_large) {
    under_way_[head_lane(of)].push_back({lane.next, message.head_bytes, now});
    heads_under_way_ += message.head_bytes;
  }
  ++lane.next;
  lane.next_offset += message.head_bytes;
  return packet;
}

std::optional<Packet> Outbox::next_chunk(Class of, Instant now) {
  Lane& lane = lanes_[bulk_lane(of)];
  if (lane.next == lane.end) return std::nullopt;
  Queue& queue = queues_[static_cast<std::size_t>(of)];
  settle_cursor(queue);
  Cursor& cursor = queue.cursor;
  const Outgoing& message = queue.messages[cursor.message];
  if (lanes_[head_lane(of)].next <= message.head) return std::nullopt;  // Behind its message.
  const transport::Piece& frame = message.frames[cursor.frame];
  const std::size_t bytes = std::min(options_.chunk_bytes, frame.bytes.size() - cursor.offset);
  if (bytes_under_way() > 0 && bytes_under_way() + bytes > window_.bytes()) {
    window_full_ = true;
    return std::nullopt;
  }
  if (lane.next_offset + bytes > lane.limit) return std::nullopt;
  Packet packet{encode(link_, Chunk{of, lane.next}), {}};
  packet.pieces.push_back({frame.keeper, frame.bytes.subspan(cursor.offset, bytes)});
  cursor.offset += bytes;
  lane.next_offset += bytes;
  under_way_[bulk_lane(of)].push_back({lane.next++, bytes, now});
  bulk_under_way_ += bytes;
  return packet;
}

/// Moves the cursor to the next byte that goes in a chunk; there is one.
void Outbox::settle_cursor(Queue& queue) const {
  Cursor& cursor = queue.cursor;
  while (true) {
    const Outgoing& message = queue.messages[cursor.message];
    if (cursor.frame == message.frames.size()) {
      cursor = {cursor.message + 1, 0, 0};
    } else if (!is_bulk(message, cursor.frame) || cursor.offset == message.frames[cursor.frame].bytes.size()) {
      ++cursor.frame;
      cursor.offset = 0;
    } else {
      return;
    }
  }
}

Result<void> Outbox::on_receipts(const PerLane<Receipt>& receipts, Instant now) {
  for (std::size_t lane = 0; lane < kLanes; ++lane)
    if (!acknowledge(lane, receipts[lane], now)) return fail(ErrorKind::invalid, "a receipt for what was never sent");
  for (std::size_t c = 0; c < kClasses; ++c) drop_acknowledged(Class(c));
  return {};
}

bool Outbox::acknowledge(std::size_t number, const Receipt& receipt, Instant now) {
  Lane& lane = lanes_[number];
  lane.limit = std::max(lane.limit, receipt.limit);
  if (receipt.units <= lane.acked) return true;  // Old news.
  if (receipt.units > lane.next) return false;
  lane.acked = receipt.units;
  auto& under_way = under_way_[number];
  std::uint64_t acked = 0;
  Duration delay{};
  while (!under_way.empty() && under_way.front().number < receipt.units) {
    acked += under_way.front().bytes;
    delay = now - under_way.front().at;
    under_way.pop_front();
  }
  (number < kClasses ? heads_under_way_ : bulk_under_way_) -= acked;
  if (acked > 0) window_.on_acked(acked, delay, std::exchange(window_full_, false), now);
  return true;
}

void Outbox::drop_acknowledged(Class of) {
  Queue& queue = queues_[static_cast<std::size_t>(of)];
  Lane& heads = lanes_[head_lane(of)];
  const Lane& bulk = lanes_[bulk_lane(of)];
  while (!queue.messages.empty()) {
    const Outgoing& message = queue.messages.front();
    if (heads.acked <= message.head || bulk.acked < message.first_chunk + message.chunks) return;
    // The next chunk is a later message's: a receipt goes no further than what was sent, but for a rewind, which comes
    // behind the greeting's receipts.
    queue.bytes -= message.head_bytes;
    queue.messages.pop_front();
    if (queue.cursor.message > 0) {
      --queue.cursor.message;
    } else {
      queue.cursor = {};
    }
  }
}

void Outbox::rewind() {
  window_.forget_path();
  heads_under_way_ = bulk_under_way_ = 0;
  for (auto& under_way : under_way_) under_way.clear();
  for (std::size_t c = 0; c < kClasses; ++c) {
    const Class of{static_cast<std::uint8_t>(c)};
    Queue& queue = queues_[c];
    Lane& heads = lanes_[head_lane(of)];
    Lane& bulk = lanes_[bulk_lane(of)];
    heads.next = heads.acked;
    bulk.next = bulk.acked;
    heads.next_offset = heads.end_offset;
    bulk.next_offset = bulk.end_offset;
    queue.cursor = {};
    bool is_placed = false;
    for (std::size_t i = 0; i < queue.messages.size(); ++i) {
      const Outgoing& message = queue.messages[i];
      if (message.head >= heads.acked) heads.next_offset -= message.head_bytes;
      if (is_placed || bulk.acked >= message.first_chunk + message.chunks) continue;
      is_placed = true;
      // Its chunks that have come, frame by frame.
      std::uint64_t come = bulk.acked - message.first_chunk;
      queue.cursor = {i, 0, 0};
      bulk.next_offset = message.bulk_offset;
      for (std::size_t f = 0; f < message.frames.size(); ++f) {
        if (!is_bulk(message, f)) continue;
        const std::size_t bytes = message.frames[f].bytes.size();
        const std::uint64_t chunks = chunks_of(bytes, options_.chunk_bytes);
        queue.cursor = {i, f, std::min<std::size_t>(bytes, come * options_.chunk_bytes)};
        bulk.next_offset += queue.cursor.offset;
        if (come < chunks) break;
        come -= chunks;
      }
    }
  }
}

PerLane<std::uint64_t> Outbox::sent() const {
  PerLane<std::uint64_t> sent{};
  for (std::size_t lane = 0; lane < kLanes; ++lane) sent[lane] = lanes_[lane].next;
  return sent;
}

bool Outbox::empty() const {
  return std::all_of(queues_.begin(), queues_.end(), [](const Queue& queue) { return queue.messages.empty(); });
}

}  // namespace paceline::link
