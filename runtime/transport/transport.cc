#include "runtime/transport/transport.h"

#include <utility>

namespace paceline::transport {

std::vector<Piece> pieces_of(const std::shared_ptr<const std::vector<Frame>>& frames) {
  std::vector<Piece> pieces;
  pieces.reserve(frames->size());
  for (const Frame& frame : *frames) pieces.push_back({frames, frame});
  return pieces;
}

Result<void> Transport::send_pieces(const Peer& peer, Frame&& head, std::vector<Piece>&& pieces) {
  std::vector<Frame> frames;
  frames.reserve(1 + pieces.size());
  frames.push_back(std::move(head));
  for (const Piece& piece : pieces) frames.emplace_back(piece.bytes.begin(), piece.bytes.end());
  auto sent = send(peer, std::move(frames));
  // NOLINTNEXTLINE(bugprone-use-after-move): as they were.
  if (!sent && sent.error().kind == ErrorKind::overloaded) head = std::move(frames.front());
  return sent;
}

}  // namespace paceline::transport
