#include "algorithms/cluster/training/peer_names.h"

#include <cstdint>
#include <string_view>

#include "runtime/base/read_number.h"

namespace paceline::cluster {
namespace {

constexpr std::string_view kAgent = "agent/";
constexpr std::string_view kWorker = "worker/";
constexpr std::string_view kSession = "session/";

/// The number behind the prefix, which is all that follows it; `none` where that is no such name.
template <class Number>
Number number_behind(std::string_view prefix, std::string_view peer, Number none) {
  return peer.starts_with(prefix) ? read_number<Number>(peer.substr(prefix.size())).value_or(none) : none;
}

}  // namespace

std::string agent_peer(NodeId node) { return std::string(kAgent) + to_string(node); }

NodeId node_of_peer(const transport::Peer& peer) { return NodeId{number_behind<std::int32_t>(kAgent, peer, -1)}; }

bool is_session(const transport::Peer& peer) { return peer.starts_with(kSession); }

WorkerId worker_of(const transport::Peer& peer) {
  return WorkerId{number_behind<std::uint64_t>(is_session(peer) ? kSession : kWorker, peer, 0)};
}

}  // namespace paceline::cluster
