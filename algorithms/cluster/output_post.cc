#include "algorithms/cluster/output_post.h"

#include <utility>

#include "algorithms/cluster/job_directory.h"

namespace paceline::cluster {

OutputPost::OutputPost(NodeId self, EventLoop& loop, observe::Log& log, Ways ways)
    : self_(self),
      ways_(std::move(ways)),
      output_(loop, log, [this](const WorkerOutput::Reader& reader, WorkerOutput::Batch batch) {
        send(reader, std::move(batch));
      }) {}

void OutputPost::send(const WorkerOutput::Reader& reader, WorkerOutput::Batch batch) {
  actors::Output output;
  output.to = reader.driver;
  output.node = self_;
  output.bytes = static_cast<std::uint32_t>(batch.bytes);
  output.all = batch.all;
  for (auto& part : batch.parts)
    output.parts.push_back(
        {std::move(part.who), std::move(part.log), part.lines.left_out, std::move(part.lines.lines)});
  if (reader.node == self_) return deliver(self_, std::move(output));
  ways_.to_node(reader.node, actors::encode(output));
}

void OutputPost::say(const WorkerOutput::Reader& reader, const std::string& line) {
  actors::Output output;
  output.to = reader.driver;
  output.node = self_;
  output.parts.push_back({"paceline", "", 0, line + "\n"});
  if (reader.node == self_) return deliver(self_, std::move(output));
  ways_.to_node(reader.node, actors::encode(output));
}

void OutputPost::on_output(NodeId from, actors::Output output) {
  if (from.value < 0) return;
  output.node = from;
  deliver(from, std::move(output));
}

void OutputPost::deliver(NodeId from, actors::Output output) {
  const std::string driver = output.to;
  if (const auto known = drivers_.find(driver); output.all && known != drivers_.end())
    output.all = known->second.awaited.erase(from) > 0 && known->second.awaited.empty();
  if (ways_.to_driver(driver, actors::encode(output))) {
    if (from != self_) drivers_[driver].elsewhere.insert(from);
    return;
  }
  if (from == self_) return gone_.push_back({driver, self_});
  actors::OutputWanted word;
  word.driver = driver;
  word.gone = true;
  ways_.to_node(from, actors::encode(word));
}

void OutputPost::on_wanted(const std::string& driver, const actors::OutputWanted& wanted) {
  Driver& known = drivers_[driver];
  actors::OutputWanted word = wanted;
  word.driver = driver;
  word.gone = false;
  if (!wanted.all) {
    if (wanted.node == self_) return output_.on_shown({driver, self_}, wanted.bytes);
    if (known.elsewhere.contains(wanted.node)) ways_.to_node(wanted.node, actors::encode(word));
    return;
  }
  known.awaited = ways_.others();
  const auto others = known.awaited;
  known.elsewhere.insert(others.begin(), others.end());
  known.awaited.insert(self_);
  output_.on_all_wanted({driver, self_});
  for (const NodeId node : others) ways_.to_node(node, actors::encode(word));
}

void OutputPost::on_wanted(NodeId from, const actors::OutputWanted& wanted) {
  if (from.value < 0) return;
  const WorkerOutput::Reader reader{wanted.driver, from};
  output_.let_go(reader);
  if (wanted.gone) return gone_.push_back(reader);
  if (wanted.all) return output_.on_all_wanted(reader);
  output_.on_shown(reader, wanted.bytes);
}

void OutputPost::on_peer_gone(const std::string& peer) {
  gone_.push_back({peer, self_});
  const auto known = drivers_.extract(peer);
  if (known.empty()) return;
  actors::OutputWanted word;
  word.driver = peer;
  word.gone = true;
  for (const NodeId node : known.mapped().elsewhere) ways_.to_node(node, actors::encode(word));
}

void OutputPost::on_node_gone(NodeId node) { gone_nodes_.push_back(node); }

void OutputPost::tick(Instant now) {
  for (const NodeId node : std::exchange(gone_nodes_, {})) {
    output_.hold_node(node, now + JobDirectory::kDriverPatience);
    std::vector<std::string> answered;
    for (auto& [driver, known] : drivers_) {
      known.elsewhere.erase(node);
      if (known.awaited.erase(node) > 0 && known.awaited.empty()) answered.push_back(driver);
    }
    for (const auto& driver : answered) {
      actors::Output all;
      all.to = driver;
      all.node = self_;
      all.all = true;
      (void)ways_.to_driver(driver, actors::encode(all));
    }
  }
  for (const auto& reader : std::exchange(gone_, {})) output_.forget(reader);
  output_.tick(now);
}

std::optional<Instant> OutputPost::next_deadline() const {
  if (!gone_.empty() || !gone_nodes_.empty()) return Instant{};
  return output_.next_deadline();
}

}  // namespace paceline::cluster
