#include "algorithms/cluster/head_links.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "algorithms/cluster/requests.h"

namespace paceline::cluster {

void HeadLinks::on_hello(NodeId node, const transport::Peer& peer, const wire::Hello::Reader& hello) {
  nodes_[node] = {peer, wire::text(hello.getAddress()), hello.getCpus(), hello.getMemory(), hello.getPid(), epoch_ + 1,
                  0};
  expected_ = std::max(expected_, node.value + 1);
  (void)transport_->send(peer, {wire::welcome(peer, node)});
  begin_epoch();
}

bool HeadLinks::on_linked(NodeId node, std::int64_t epoch) {
  const auto it = nodes_.find(node);
  if (it == nodes_.end()) return false;
  it->second.linked = epoch;
  return true;
}

void HeadLinks::begin_epoch() {
  ++epoch_;
  for (const auto& [id, to] : nodes_) {
    wire::Message message;
    auto body = message.root().initNodes();
    body.setEpoch(epoch_);
    auto list = body.initNodes(static_cast<unsigned>(nodes_.size()));
    unsigned i = 0;
    for (const auto& [node, entry] : nodes_) {
      list[i].setNode(node.value);
      list[i].setName(entry.peer);
      list[i].setAddress(entry.address);
      list[i].setCpus(entry.cpus);
      list[i].setMemory(entry.memory);
      list[i].setPid(entry.pid);
      ++i;
    }
    send(to.peer, message);
  }
}

bool HeadLinks::ready() const {
  std::int64_t newest = 0;  // Of the nodes of a lower number.
  for (const auto& [id, node] : nodes_) {
    if (node.linked < newest) return false;
    newest = std::max(newest, node.since);
  }
  return static_cast<std::int32_t>(nodes_.size()) == expected_;
}

bool HeadLinks::are_linked(NodeId one, NodeId other) const {
  const auto first = nodes_.find(std::min(one, other)), second = nodes_.find(std::max(one, other));
  return one == other ||
         (first != nodes_.end() && second != nodes_.end() && second->second.linked >= first->second.since);
}

void HeadLinks::send(const transport::Peer& peer, wire::Message& message) {
  (void)transport_->send(peer, {message.to_frame()});
}

void HeadLinks::to_all(wire::Message& message) {
  for (const auto& [id, node] : nodes_) send(node.peer, message);
}

void HeadLinks::reply(const Asker& asker, const Result<nlohmann::json>& answer) {
  wire::Message message;
  write_reply(message, asker.id, asker.from, answer);
  send(asker.agent, message);
}

void HeadLinks::depend_on(const std::set<NodeId>& needed) {
  for (const auto& [node, entry] : nodes_) transport_->depends_on(entry.peer, needed.contains(node));
}

}  // namespace paceline::cluster
